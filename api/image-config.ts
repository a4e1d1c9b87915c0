import { z } from 'zod';
import type { Kind, KubernetesObject } from './object.ts';

const registries = z.array(z.string().min(1).max(512)).max(500).exactOptional();

export const ImageConfigSpec = z.object({
  registrySources: z
    .object({
      insecureRegistries: registries.describe(
        'Registries, repositories or *.domain that are contacted without verifying certificates, or over plain HTTP.',
      ),
      blockedRegistries: registries.describe(
        'Registries that are never contacted. Mutually exclusive with allowedRegistries.',
      ),
      allowedRegistries: registries.describe(
        'The only registries that images are pulled from. Mutually exclusive with blockedRegistries.',
      ),
      containerRuntimeSearchRegistries: z
        .array(z.string().min(1).max(255))
        .max(50)
        .exactOptional()
        .describe('Registries searched, in this order, for images without a registry in their name.'),
    })
    .exactOptional()
    .describe('The registries that nodes may pull images from.'),
});

/** The one Image object, named `cluster` (config.openshift.io/v1): the fields of it that concern nodes. */
export interface ImageConfig extends KubernetesObject {
  readonly spec: z.infer<typeof ImageConfigSpec>;
}

export const ImageConfigs: Kind<ImageConfig> = {
  group: 'config.openshift.io',
  version: 'v1',
  kind: 'Image',
  plural: 'images',
  namespaced: false,
};

/** The only name of an Image object. */
export const IMAGE_CONFIG = 'cluster';
