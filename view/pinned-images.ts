import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { hasPinnedImages } from '../machineconfig/pinned-image-sets.ts';
import type { PoolView } from './schemas.ts';

/** @returns undefined where no node has to keep any. */
export function pinnedImagesView(members: readonly MachineConfigNode[]): PoolView['pinnedImages'] {
  const concerned = members.filter(({ spec }) => spec.pinnedImages !== undefined);
  if (concerned.length === 0) return undefined;
  return {
    nodes: concerned.length,
    complete: concerned.filter(hasPinnedImages).length,
    problems: concerned.flatMap(({ metadata, status }) => {
      const degraded = status?.conditions?.find(({ type }) => type === 'PinnedImageSetsDegraded');
      return degraded?.status === 'True' ? [{ node: metadata.name, why: degraded.message }] : [];
    }),
  };
}
