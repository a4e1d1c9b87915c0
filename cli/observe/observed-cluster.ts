import type { ConfigMap, Deployment, Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { holdingOf, leaseNameOf } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { maintenanceOf } from '../../rollout/pools/node-state.ts';

/** What tells how far a cluster's nodes are, at one moment. */
export interface ObservedCluster {
  /** The opt-in switch; undefined where there is none, which means off. */
  readonly switchMap: ConfigMap | undefined;
  readonly operator: Deployment | undefined;
  readonly builder: Deployment | undefined;
  readonly pools: readonly MachineConfigPool[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  /** The leases of nodes; undefined where whoever asks may not read them. */
  readonly leases: readonly Lease[] | undefined;
  /** Names of nodes with an active NodeMaintenance (medik8s). */
  readonly inMaintenance: ReadonlySet<string>;
}

/** A cluster before Shale is there. */
export const nothingObserved: ObservedCluster = {
  switchMap: undefined,
  operator: undefined,
  builder: undefined,
  pools: [],
  machineOSConfigs: [],
  builds: [],
  machineConfigNodes: [],
  nodes: [],
  leases: [],
  inMaintenance: new Set(),
};

/** @returns the MachineConfigNodes that belong to a pool, by name. */
export function nodesOfPool(
  { machineConfigNodes }: Pick<ObservedCluster, 'machineConfigNodes'>,
  pool: string,
): readonly MachineConfigNode[] {
  return machineConfigNodes
    .filter(({ spec }) => spec.pool.name === pool)
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

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
