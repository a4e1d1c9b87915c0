import { annotations } from '../../api/names.ts';
import type { Hold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

export const CORDONED = 'Cordoned';
export const CORDONED_BY_OTHERS = 'cordoned, and not by Shale';

/**
 * Somebody else cordoned the node. A cordon says only that no pod is to come, but it is all that `kubectl drain`, Kured
 * and most others show of their work. MCO skips such nodes, too (getAllCandidateMachines). Shale's own cordon is marked
 * in the same write (act/node-work.ts), so it is not taken for another's after a crash.
 */
export const cordoned = {
  kind: 'holder',
  hold: ({
    node: { metadata, spec },
    updateCordoned,
  }: Pick<SeenNode, 'node' | 'updateCordoned'>): Hold | undefined => {
    const isTheirs =
      spec?.unschedulable === true && metadata.annotations?.[annotations.cordonedByShale] === undefined;
    return isTheirs && updateCordoned !== true
      ? { reason: CORDONED, message: CORDONED_BY_OTHERS }
      : undefined;
  },
} as const;

/**
 * @param holders of a node.
 * @returns who keeps its disk as it is, so that nothing is staged or delivered. A cordon alone doesn't: who drains a
 *   node to reboot it (spec.shale.rebootPolicy) may wait for what it boots.
 */
export function diskHolder(holders: readonly Hold[]): Hold | undefined {
  return holders.find(({ reason }) => reason !== CORDONED);
}
