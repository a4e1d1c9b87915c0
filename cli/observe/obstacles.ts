import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
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

/**
 * Warnings for whoever is about to start a rollout.
 *
 * @param now ms since the epoch.
 * @returns a line for each node of the pools that the rollout passes by, or that takes one of maxUnavailable from it.
 */
export function obstaclesOf(
  seen: Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes' | 'machineConfigNodes'>,
  pools: readonly string[],
  now: number,
): string[] {
  const members = seen.machineConfigNodes.filter(({ spec }) => pools.includes(spec.pool.name));
  const nodes = new Map(seen.nodes.map((node) => [node.metadata.name, node]));
  return members.flatMap(({ metadata: { name } }) => {
    const why = obstacleOf(seen, name, now);
    if (why !== undefined) return [`node ${name} is skipped: ${why}`];
    const outOfService = outOfServiceBecause(nodes.get(name));
    return outOfService === undefined
      ? []
      : [`node ${name} already counts towards maxUnavailable: ${outOfService}`];
  });
}

/** A node that Shale itself has at work is no obstacle. */
function outOfServiceBecause(node: Node | undefined): string | undefined {
  if (node === undefined || node.metadata.annotations?.[annotations.cordonedByShale] !== undefined)
    return undefined;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const reasons = [
    ...(ready === undefined || ready.status === 'True' ? [] : ['not Ready']),
    ...(node.spec?.unschedulable === true ? ['cordoned'] : []),
  ];
  return reasons.length === 0 ? undefined : reasons.join(', ');
}
