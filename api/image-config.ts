import { z } from 'zod';
import type { Kind, KubernetesObject } from './object.ts';

const registries = z.array(z.string().min(1).max(512)).max(500).exactOptional();

export const ImageConfigSpec = z.object({
  registrySources: z
    .object({
      insecureRegistries: registries.describe(
        'Registries, repositories or *.domain whose certificates are not checked and that may speak plain HTTP.',
      ),
      blockedRegistries: registries.describe('Never contacted; not beside allowedRegistries.'),
      allowedRegistries: registries.describe(
        'The only ones that images come from; not beside blockedRegistries.',
      ),
      containerRuntimeSearchRegistries: z
        .array(z.string().min(1).max(255))
        .max(50)
        .exactOptional()
        .describe('Where images without a registry in their name are looked for, in this order.'),
    })
    .exactOptional()
    .describe('Where nodes may take images from.'),
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
