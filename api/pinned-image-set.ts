import { z } from 'zod';
import type { Kind, KubernetesObject } from './object.ts';

/** Also a word on the command line of the node's crictl: no option begins so. */
const PinnedImageName = z
  .string()
  .min(1)
  .max(447)
  .regex(/^[A-Za-z0-9][A-Za-z0-9.:-]*(\/[a-z0-9._-]+)+@sha256:[a-f0-9]{64}$/, {
    error: 'an image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>',
  })
  .describe('An image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>.');

export const PinnedImageSetSpec = z.object({
  pinnedImages: z
    .array(z.object({ name: PinnedImageName }))
    .min(1)
    .max(500)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .describe('Images, by digest, that nodes pull in this order and keep.'),
});

/** Images that must be on the nodes of the pools that select it. */
export interface PinnedImageSet extends KubernetesObject {
  readonly spec: z.infer<typeof PinnedImageSetSpec>;
}

export const PinnedImageSets: Kind<PinnedImageSet> = {
  group: 'machineconfiguration.openshift.io',
  version: 'v1',
  kind: 'PinnedImageSet',
  plural: 'pinnedimagesets',
  namespaced: false,
};
