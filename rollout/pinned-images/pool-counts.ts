import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';
import { hasPinnedImages } from '../../machineconfig/pinned-image-sets.ts';

/** The nodes of a pool that have all of their pinned images. */
export type PinnedNodes = ReadonlySet<string>;

/**
 * @param nodes of the pool that have to keep images.
 * @returns undefined where there are none.
 */
export function pinnedNodes(nodes: readonly MachineConfigNode[]): PinnedNodes | undefined {
  if (nodes.length === 0) return undefined;
  return new Set(nodes.filter(hasPinnedImages).map(({ metadata }) => metadata.name));
}

/**
 * The counts of a pool's pinned images, as MCO has them in the pool's status. As with MCO a node counts as unavailable
 * for the reasons for which it does in the pool, such as an update, and not for its images.
 *
 * @param pinned undefined where no node has to keep images; then there are no counts.
 * @param machineCount nodes of the pool.
 * @param unavailable names of nodes of the pool.
 */
export function pinnedImagesCounts(
  pinned: PinnedNodes | undefined,
  machineCount: number,
  unavailable: readonly string[],
): Pick<MachineConfigPoolStatus, 'poolSynchronizersStatus'> {
  if (pinned === undefined) return {};
  return {
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
