import { z } from 'zod';
import { imageNames } from '../oci/image-names.ts';
import { clusterKind, type KubernetesObject } from './object.ts';

const A_SCOPE = 'host[:port][/repository], or *.domain';
const registry = z.string().min(1).max(256).regex(imageNames.scope, { error: A_SCOPE });
const mirror = z.string().min(1).max(512).regex(imageNames.mirror, { error: 'host[:port][/repository]' });

/** A registry, repository or namespace, as a prefix in registries.conf; `*.` matches any subdomain. */
const source = z
  .string()
  .min(1)
  .max(512)
  .describe('The registry or repository that is mirrored, or *.domain.');
const MIRRORS = 'Mirrors, tried in this order before the source.';
const mirrorSourcePolicy = z
  .enum(['NeverContactSource', 'AllowContactingSource'])
  .exactOptional()
  .describe('Whether the source is contacted if no mirror has the image. Defaults to AllowContactingSource.');
const mirrorRule = z.object({
  source: source.regex(imageNames.scope, { error: A_SCOPE }),
  mirrors: z.array(mirror).meta({ 'x-kubernetes-list-type': 'set' }).exactOptional().describe(MIRRORS),
  mirrorSourcePolicy,
});

export const ImageDigestMirrorSetSpec = z.object({
  imageDigestMirrors: z.array(mirrorRule).exactOptional().describe('Rules for images by digest.'),
});
export const ImageTagMirrorSetSpec = z.object({
  imageTagMirrors: z.array(mirrorRule).exactOptional().describe('Rules for images by tag.'),
});
export const ImageContentSourcePolicySpec = z.object({
  repositoryDigestMirrors: z
    .array(
      z.object({
        source,
        mirrors: z.array(z.string().min(1).max(512)).exactOptional().describe(MIRRORS),
      }),
    )
    .exactOptional()
    .describe('Rules for images by digest.'),
});

export interface ImageDigestMirrorSet extends KubernetesObject {
  readonly spec: z.infer<typeof ImageDigestMirrorSetSpec>;
}
export interface ImageTagMirrorSet extends KubernetesObject {
  readonly spec: z.infer<typeof ImageTagMirrorSetSpec>;
}
export interface ImageContentSourcePolicy extends KubernetesObject {
  readonly spec: z.infer<typeof ImageContentSourcePolicySpec>;
}

export const ImageDigestMirrorSets = clusterKind<ImageDigestMirrorSet>(
  'config.openshift.io/v1',
  'ImageDigestMirrorSet',
);
export const ImageTagMirrorSets = clusterKind<ImageTagMirrorSet>(
  'config.openshift.io/v1',
  'ImageTagMirrorSet',
);
export const ImageContentSourcePolicies = clusterKind<ImageContentSourcePolicy>(
  'operator.openshift.io/v1alpha1',
  'ImageContentSourcePolicy',
);

const registries = z.array(registry).max(1024).exactOptional();

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
    .meta({
      'x-kubernetes-validations': [
        {
          rule: 'has(self.blockedRegistries) ? !has(self.allowedRegistries) : true',
          message: 'only one of blockedRegistries or allowedRegistries may be set',
        },
      ],
    })
    .exactOptional()
    .describe('The registries that nodes may pull images from.'),
});

/** The Image object `cluster` (config.openshift.io/v1), with the fields that concern nodes. */
export interface ImageConfig extends KubernetesObject {
  readonly spec: z.infer<typeof ImageConfigSpec>;
}

export const ImageConfigs = clusterKind<ImageConfig>('config.openshift.io/v1', 'Image');

/** The only name of an Image object. */
export const IMAGE_CONFIG = 'cluster';
