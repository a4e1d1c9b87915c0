import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../builder/secrets.ts';
import { byDigest, parseReference } from '../image/reference.ts';
import { deleteWithReferrers, manifestAt } from '../image/referrers.ts';
import { createRegistryClient, type RegistryClient } from '../image/registry/registry-client.ts';
import type { ImagePruner } from '../opt-in/act-on-layering.ts';

/**
 * @returns what deletes images and what refers to them from their registry, with the Secret that they were pushed with.
 */
export function registryPruner(options: RegistryAccessOptions): ImagePruner {
  const clientFor = async ({ metadata, spec }: MachineOSBuild, signal: AbortSignal) => {
    // A MachineOSConfig has the name of its pool (machineOSConfigRules).
    const secrets = {
      pool: spec.machineOSConfig.name,
      names: [metadata.annotations?.[annotations.pushSecret]],
    };
    return createRegistryClient(await readRegistryAccess(options, secrets, signal));
  };
  return {
    async deleteImage(image, build, signal) {
      await deleteByDigest(await clientFor(build, signal), image, signal);
    },
    async imageAt(tag, build, signal) {
      const reference = parseReference(tag);
      const manifest = await manifestAt(await clientFor(build, signal), reference, signal);
      return manifest && byDigest(reference, manifest.digest);
    },
  };
}

/**
 * Deletes an image, and what refers to it. @throws TypeError for one by tag, which may be another by now;
 * RegistryError, ContentError
 */
export async function deleteByDigest(
  client: RegistryClient,
  image: DigestedPullspec,
  signal: AbortSignal,
): Promise<void> {
  const reference = parseReference(image);
  if (reference.digest === undefined) throw new TypeError(`${image}: expected an image by digest`);
  await deleteWithReferrers(client, reference, reference.digest, signal);
}
