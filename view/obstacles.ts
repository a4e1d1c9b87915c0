import type { Node } from '../api/kubernetes.ts';
import { annotations } from '../api/names.ts';
import { unsupportedBecause } from '../predict/node/predict-node.ts';
import { holdersOf } from '../rollout/gates/gates.ts';
import { conditionOf } from './conditions.ts';
import { objectNamed } from './named.ts';
import { type NodesCluster, nodeSource, seenNode } from './node-source.ts';

/**
 * Why a rollout skips a node, as far as the observed objects show it.
 *
 * @param now ms since the epoch.
 * @returns undefined when the rollout doesn't skip it.
 */
export function obstacleOf(cluster: NodesCluster, node: string, now: number): string | undefined {
  return holdersOf(seenNode(node, nodeSource(node, cluster), now), now)[0]?.message;
}

/**
 * Warnings before a rollout.
 *
 * @param now ms since the epoch.
 * @returns a line for each node of the pools that the rollout skips, or that already counts towards maxUnavailable.
 */
export function obstaclesOf(cluster: NodesCluster, pools: readonly string[], now: number): string[] {
  const members = cluster.machineConfigNodes.filter(({ spec }) => pools.includes(spec.pool.name));
  return members.flatMap((member) => {
    const { name } = member.metadata;
    // It takes no part in the rollout, and a plan says so.
    if (unsupportedBecause(member) !== undefined) return [];
    const why = obstacleOf(cluster, name, now);
    if (why !== undefined) return [`node ${name} is skipped: ${why}`];
    const outOfService = outOfServiceBecause(objectNamed(cluster.nodes, name));
    return outOfService === undefined
      ? []
      : [`node ${name} already counts towards maxUnavailable: ${outOfService}`];
  });
}

/** A node that Shale itself has cordoned is not an obstacle. */
function outOfServiceBecause(node: Node | undefined): string | undefined {
  if (node === undefined || node.metadata.annotations?.[annotations.cordonedByShale] !== undefined)
    return undefined;
  const ready = conditionOf(node.status?.conditions, 'Ready');
  const reasons = [
    ...(ready === undefined || ready.status === 'True' ? [] : ['not Ready']),
    ...(node.spec?.unschedulable === true ? ['cordoned'] : []),
  ];
  return reasons.length === 0 ? undefined : reasons.join(', ');
}
