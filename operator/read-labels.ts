import { type RegistryAccessOptions, readRegistryAccess } from '../builder/secrets.ts';
import { readImageLabels } from '../image/image-labels.ts';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import type { ReadImageLabels } from '../rollout/act/keep-record.ts';

/**
 * Reads labels of images with the Secret that the MachineOSConfig names: what the builder wrote on the build decides
 * neither the registry nor the Secret.
 */
export function registryLabels(options: RegistryAccessOptions): ReadImageLabels {
  return async ({ status }, { spec }, signal) => {
    const access = await readRegistryAccess(options, [spec.renderedImagePushSecret?.name], signal);
    const reference = parseReference(status?.digestedImagePushSpec ?? '');
    return readImageLabels(createRegistryClient(access), reference, signal);
  };
}
