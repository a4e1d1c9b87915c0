import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../builder/secrets.ts';
import { parseReference } from '../image/reference.ts';
import { deleteWithReferrers } from '../image/referrers.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import type { ImagePruner } from '../opt-in/act-on-layering.ts';

/** @returns what deletes images and what refers to them from their registry, with the Secret that they were pushed with. */
export function registryPruner(options: RegistryAccessOptions): ImagePruner {
  return {
    async deleteImage(image, build: MachineOSBuild, signal) {
      const secret = build.metadata.annotations?.[annotations.pushSecret];
      const access = await readRegistryAccess(options, [secret], signal);
      const reference = parseReference(image);
      if (reference.digest === undefined) throw new TypeError(`${image}: expected an image by digest`);
      await deleteWithReferrers(createRegistryClient(access), reference, reference.digest, signal);
    },
  };
}
