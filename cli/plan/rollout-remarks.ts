import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { obstaclesOf } from '../../view/obstacles.ts';
import { poolRemarks } from './pool-remarks.ts';

/** What shows which nodes a rollout skips. */
type SkippedNodes = Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes' | 'machineConfigNodes'>;

/**
 * @param names of the pools that a command is about. @param pools of the cluster. @param now ms since the epoch.
 * @returns what delays a rollout in these pools now, and the nodes that it skips; one line each.
 */
export function rolloutRemarks(
  names: readonly string[],
  pools: readonly MachineConfigPool[],
  cluster: SkippedNodes,
  now: number,
): readonly string[] {
  const own = pools.filter(({ metadata }) => names.includes(metadata.name));
  return [
    ...own.flatMap((pool) => poolRemarks(pool, now, pools)),
    ...obstaclesOf({ ...cluster, pools }, names, now),
  ];
}
