import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { obstaclesOf } from '../../view/obstacles.ts';
import { slotsTakenIn } from '../../view/slots.ts';
import { poolRemarks } from './pool-remarks.ts';

/** What shows which nodes a rollout skips. */
type SkippedNodes = Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes' | 'machineConfigNodes'>;

/**
 * @param names of the pools that a command is about. @param pools of the cluster. @param now ms since the epoch.
 * @param disrupts whether the change drains or reboots nodes, so that it needs room in maxUnavailable.
 * @returns what delays a rollout in these pools now, and the nodes that it skips; one line each.
 */
export function rolloutRemarks(
  names: readonly string[],
  pools: readonly MachineConfigPool[],
  cluster: SkippedNodes,
  now: number,
  disrupts: boolean,
): readonly string[] {
  const own = pools.filter(({ metadata }) => names.includes(metadata.name));
  return [
    ...own.flatMap((pool) => poolRemarks(pool, now, pools)),
    ...own.flatMap((pool) => (disrupts ? (slotsTakenIn(pool, { ...cluster, pools }, now) ?? []) : [])),
    ...obstaclesOf({ ...cluster, pools }, names, now),
  ];
}
