import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { maxUnavailable } from '../api/max-unavailable.ts';
import { unsupportedBecause } from '../predict/node/unsupported-host.ts';
import { isNew } from '../rollout/pools/new-node.ts';
import { formatSlotsTaken, slotTaker } from '../rollout/pools/slot-takers.ts';
import type { NodesCluster } from './node-source.ts';
import { nodeStateOf } from './node-view.ts';
import { nodesOfPool } from './observed-cluster.ts';

/**
 * @param now ms since the epoch.
 * @returns that no node of the pool can be drained or rebooted, and what would change it, where nodes that others have
 *   taken out of service use up maxUnavailable; undefined while a slot is free.
 */
export function slotsTakenIn(
  pool: MachineConfigPool,
  cluster: NodesCluster,
  now: number,
): string | undefined {
  const members = nodesOfPool(cluster, pool.metadata.name).filter(
    (node) => unsupportedBecause(node) === undefined,
  );
  const states = members.map((node) => nodeStateOf(node, cluster, now));
  const takers = states.flatMap((state) => slotTaker(state) ?? []);
  const most = maxUnavailable(pool.spec.maxUnavailable, states.filter((state) => !isNew(state)).length);
  return takers.length === 0 || takers.length < most ? undefined : formatSlotsTaken(takers);
}
