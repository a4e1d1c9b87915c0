import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { hasPinnedImages } from '../../machineconfig/pinned-image-sets.ts';
import type { FreshCache } from '../fresh-cache.ts';
import type { StatusPart, StatusPartOf } from '../node-feature.ts';
import { NodesWithPinnedImages } from './keeping-nodes.ts';

/** @param cache not started yet. @returns what adds the counts of pinned images to the status of a pool. */
export function pinnedImagesPart(
  cache: Pick<FreshCache<MachineConfigNode>, 'get' | 'onChange'>,
): StatusPartOf {
  const keeping = new NodesWithPinnedImages(cache);
  return (members) => pinnedImagesCounts(keeping.among(members));
}

/**
 * The counts of a pool's pinned images, as MCO has them in the pool's status. As with MCO a node counts as unavailable
 * for the reasons for which it does in the pool, such as an update, and not for its images.
 *
 * @param nodes of the pool that have to keep images; where there are none, there are no counts.
 */
export function pinnedImagesCounts(nodes: readonly MachineConfigNode[]): StatusPart {
  const pinned = new Set(nodes.filter(hasPinnedImages).map(({ metadata }) => metadata.name));
  return ({ machineCount, unavailable }) =>
    nodes.length === 0
      ? {}
      : {
          poolSynchronizersStatus: [
            {
              poolSynchronizerType: 'PinnedImageSets',
              machineCount,
              updatedMachineCount: pinned.size,
              readyMachineCount: pinned.size - unavailable.filter((name) => pinned.has(name)).length,
              availableMachineCount: machineCount - unavailable.length,
              unavailableMachineCount: unavailable.length,
            },
          ],
        };
}
