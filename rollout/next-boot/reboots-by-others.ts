import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { Hold } from '../gates/hold.ts';
import { awaitsRecovery } from '../pools/failures.ts';
import { isNew } from '../pools/node-availability.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';

export const REBOOTS_BY_OTHERS = 'AwaitingReboots';

/** Where reboots are left to others, the target becomes the next boot instead. */
export function isOpenForTarget(hold: Hold | undefined): boolean {
  return hold === undefined || hold.reason === REBOOTS_BY_OTHERS;
}

/**
 * A pool whose reboots are left to others reboots no node for a target. What has begun is finished: a node between two
 * states after a live update that failed reboots, and so does a node with a grant. A new node does, too: no pod runs on
 * it. The nodes that this gate holds may be armed (armed-nodes.ts).
 */
export const rebootsByOthers = {
  kind: 'node',
  hold: (
    { settings: { rebootPolicy } }: { readonly settings: Pick<PoolSettings, 'rebootPolicy'> },
    node: NodeState,
  ): Hold | undefined => {
    if (rebootPolicy === 'Automatic' || node.update.progress.kind !== 'staged') return undefined;
    if (!node.update.progress.actions.some(({ type }) => type === 'Reboot')) return undefined;
    if (isNew(node) || awaitsRecovery(node) || node.work.grant === 'Disrupt') return undefined;
    return {
      reason: REBOOTS_BY_OTHERS,
      message: `reboots are left to others (${fieldOf('rebootPolicy')})`,
    };
  },
} as const;
