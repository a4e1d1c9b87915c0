import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Decision } from '../../disruption/actions.ts';
import { imageRebootsBecause } from '../../disruption/image-reboots.ts';
import { costOf } from '../cost.ts';
import type { ImageToBuild } from '../image/image-to-build.ts';
import { formatNodes } from './refusing-nodes.ts';

/**
 * @param image that the change makes; undefined where it makes none. @param decision what the change itself asks.
 * @param nodes of its pool.
 * @returns which of them reboot for an image though the change asks for less; one line for each reason.
 */
export function imageReboots(
  image: ImageToBuild | undefined,
  decision: Decision,
  nodes: readonly MachineConfigNode[],
): readonly string[] {
  if (image === undefined || costOf(decision) === 'reboot') return [];
  const byReason = Map.groupBy(nodes, ({ status }) => imageRebootsBecause(status?.osBackend));
  return [...byReason].flatMap(([why, those]) =>
    why === undefined
      ? []
      : [
          `counted as a reboot: ${formatNodes(those.map(({ metadata }) => metadata.name).toSorted())}: ${why}`,
        ],
  );
}
