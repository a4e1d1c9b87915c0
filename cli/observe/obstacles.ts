import { holdingOf, leaseNameOf } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { maintenanceOf } from '../../rollout/pools/node-state.ts';
import type { ObservedCluster } from './observed-cluster.ts';

/**
 * Why a rollout passes a node by, as far as the objects tell.
 *
 * @param now ms since the epoch.
 * @returns undefined when nothing stands in its way.
 */
export function obstacleOf(
  seen: Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes'>,
  node: string,
  now: number,
): string | undefined {
  const lease = seen.leases?.find(({ metadata }) => metadata.name === leaseNameOf(node));
  const holding = holdingOf(lease, defaultRolloutOptions.leaseHolder, now);
  if (holding.by === 'other') return `its lease is held by ${holding.holder}`;
  if (seen.inMaintenance.has(node)) return 'a NodeMaintenance is active';
  const found = seen.nodes.find(({ metadata }) => metadata.name === node);
  return found === undefined ? undefined : maintenanceOf(found, now);
}

/** @returns a line for each node of the pools that a rollout passes by now. @param now ms since the epoch. */
export function obstaclesOf(seen: ObservedCluster, pools: readonly string[], now: number): string[] {
  return seen.machineConfigNodes
    .filter(({ spec }) => pools.includes(spec.pool.name))
    .flatMap(({ metadata }) => {
      const why = obstacleOf(seen, metadata.name, now);
      return why === undefined ? [] : [`node ${metadata.name} is passed by: ${why}`];
    });
}
