import { z } from 'zod';
import { BaseRecord } from './machine-os-build.ts';
import { clusterKind, type KubernetesObject, NameReference } from './object.ts';
import { DigestedPullspecSchema } from './references.ts';

/**
 * The record of what the nodes of a pool may run. The operator creates a revision before it assigns a target for the
 * first time, and chooses every later target from the revisions. Neither a daemon nor a builder can write one
 * (docs/decisions/0001-pool-revision.md).
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
  machineOSBuild: NameReference.extend({
    uid: z
      .string()
      .max(128)
      .exactOptional()
      .describe('A MachineOSBuild that was deleted and created again under this name is another one.'),
  })
    .exactOptional()
    .describe('The MachineOSBuild that pushed the layered image.'),
  baseRecords: z
    .array(BaseRecord)
    .max(10)
    .exactOptional()
    .describe(
      'The directories, links and accounts of the base images, as the operator itself read them from their layers: it computed the digests. A record with another digest is not believed.',
    ),
  engineImages: z
    .array(DigestedPullspecSchema)
    .max(10)
    .exactOptional()
    .describe('The images that a container engine built on the base images, one per architecture.'),
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

export const PoolRevisions = clusterKind<PoolRevision>('shale.dev/v1', 'PoolRevision');
