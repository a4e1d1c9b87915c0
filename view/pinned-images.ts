import { z } from 'zod';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { hasPinnedImages } from '../machineconfig/pinned-image-sets.ts';
import { trueCondition } from './conditions.ts';

export const PinnedImagesView = z.strictObject({
  /** Nodes that have to keep images. */
  nodes: z.number(),
  /** Those that have all of them, in the generations that are asked for. */
  complete: z.number(),
  /** Why the others don't, where a node says so; by name. */
  problems: z.array(z.strictObject({ node: z.string(), why: z.string() })),
});
export type PinnedImagesView = z.infer<typeof PinnedImagesView>;

/** @returns undefined where no node has to keep any. */
export function pinnedImagesView(members: readonly MachineConfigNode[]): PinnedImagesView | undefined {
  const concerned = members.filter(({ spec }) => spec.pinnedImages !== undefined);
  if (concerned.length === 0) return undefined;
  return {
    nodes: concerned.length,
    complete: concerned.filter(hasPinnedImages).length,
    problems: concerned.flatMap(({ metadata, status }) => {
      const degraded = trueCondition(status?.conditions, 'PinnedImageSetsDegraded');
      return degraded === undefined ? [] : [{ node: metadata.name, why: degraded.message }];
    }),
  };
}
