import { z } from 'zod';
import { clusterKind, type KubernetesObject, LONGEST_MESSAGE, MCO_V1, ObjectName } from './object.ts';
import { DigestedPullspecSchema } from './references.ts';

export const PinnedImageSetSpec = z.object({
  pinnedImages: z
    .array(z.object({ name: DigestedPullspecSchema }))
    .min(1)
    .max(500)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .describe('Images, by digest, that nodes pull in this order and keep.'),
});

/** Images that must be on the nodes of the pools that select it. */
export interface PinnedImageSet extends KubernetesObject {
  readonly spec: z.infer<typeof PinnedImageSetSpec>;
}

export const PinnedImageSets = clusterKind<PinnedImageSet>(MCO_V1, 'PinnedImageSet');

export const PinnedImagesRequest = z.object({
  sets: z
    .array(
      z.object({
        name: ObjectName.describe('Name of the PinnedImageSet.'),
        generation: z.int().min(1).describe('Its generation.'),
      }),
    )
    .max(200)
    .describe('In the order in which their images are pulled.'),
  containerRuntime: z
    .enum(['cri-o', 'containerd'])
    .exactOptional()
    .describe('The container runtime of the node. Absent: the problem says why it is not known.'),
  problem: z
    .string()
    .max(LONGEST_MESSAGE)
    .exactOptional()
    .describe('What is missing in the cluster, so that images can not be pinned as requested.'),
});
/** What the operator asks of a node about images that it has to keep. */
export type PinnedImagesRequest = z.infer<typeof PinnedImagesRequest>;

const generation = z
  .int()
  .min(1)
  .meta({ 'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'must not decrease' }] });

export const PinnedImageSetState = z
  .object({
    name: ObjectName.describe('Name of the PinnedImageSet.'),
    currentGeneration: generation
      .exactOptional()
      .describe('Its latest generation whose images are all pulled and pinned.'),
    desiredGeneration: generation
      .exactOptional()
      .describe('Its generation whose images the node is to pull and pin.'),
    lastFailedGeneration: generation.exactOptional().describe('Its latest generation that failed.'),
    lastFailedGenerationError: z.string().max(LONGEST_MESSAGE).exactOptional().describe('Why it failed.'),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.desiredGeneration) && has(self.currentGeneration) ? self.desiredGeneration >= self.currentGeneration : true',
        message: 'desired generation must be greater than or equal to the current generation',
      },
      {
        rule: 'has(self.lastFailedGeneration) && has(self.desiredGeneration) ? self.desiredGeneration >= self.lastFailedGeneration : true',
        message: 'desired generation must be greater than or equal to the last failed generation',
      },
      {
        rule: 'has(self.lastFailedGeneration) ? has(self.lastFailedGenerationError) : true',
        message: 'last failed generation error must be defined on image pull and pin failure',
      },
    ],
  });
/** How far a node is with the images of one PinnedImageSet. */
export type PinnedImageSetState = z.infer<typeof PinnedImageSetState>;
