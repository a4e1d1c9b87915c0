import { z } from 'zod';
import { type Kind, type KubernetesObject, NameReference } from './object.ts';
import { DigestedPullspecSchema } from './references.ts';

/**
 * The record of what the nodes of a pool may run. The operator creates a revision before it assigns a target for the
 * first time, and chooses every later target from the revisions. Neither a daemon nor a builder can write one.
 */
export const PoolRevisionSpec = z.object({
  machineConfigPool: NameReference.describe('The pool whose nodes may run it.'),
  revision: z.int().min(1).describe('Number of the revision; a later revision of the pool has a higher one.'),
  machineConfig: NameReference.describe('The rendered MachineConfig.'),
  image: DigestedPullspecSchema.exactOptional().describe(
    'The layered image, by digest. Absent in standard mode.',
  ),
  osImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe('The stock image of standard mode, if the rendered MachineConfig names one.'),
  baseImage: z.string().max(447).exactOptional().describe('The base image of the layered image, by digest.'),
  machineOSBuild: NameReference.exactOptional().describe('The MachineOSBuild that pushed the layered image.'),
  policyDigest: z
    .string()
    .max(447)
    .exactOptional()
    .describe('Digest of the disruption policies that the label of the image was computed with.'),
});
export type PoolRevisionSpec = z.infer<typeof PoolRevisionSpec>;

/** One thing that the nodes of a pool may run. */
export interface PoolRevision extends KubernetesObject {
  readonly spec: PoolRevisionSpec;
}

export const PoolRevisions: Kind<PoolRevision> = {
  group: 'shale.dev',
  version: 'v1',
  kind: 'PoolRevision',
  plural: 'poolrevisions',
  namespaced: false,
};
