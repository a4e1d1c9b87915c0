import type { ConfigMap, Deployment, Lease, Node } from '../api/kubernetes.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { by } from '../api/order.ts';
import { formatDispute } from '../machineconfig/pool-disputes.ts';
import { poolOfNode } from '../machineconfig/pools.ts';
import { unsupportedBecause } from '../predict/node/unsupported-host.ts';
import { updatesCordoned } from '../rollout/gates/cordoned.ts';
import { holdersOf } from '../rollout/gates/gates.ts';
import { holdingOf, leaseNameOf } from '../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { objectNamed } from './named.ts';

/** The objects that show the progress of a cluster, at one moment. */
export interface ObservedCluster {
  /** The layering switch; undefined when the ConfigMap doesn't exist, which means off. */
  readonly switchMap: ConfigMap | undefined;
  readonly operator: Deployment | undefined;
  readonly builder: Deployment | undefined;
  /** Undefined where the live page is not installed. */
  readonly page: Deployment | undefined;
  readonly pools: readonly MachineConfigPool[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  /** Undefined when nothing depends on them, or the user is not allowed to list them. */
  readonly machineConfigs?: readonly MachineConfig[] | undefined;
  /** The leases of nodes; undefined when the user is not allowed to list them. */
  readonly leases: readonly Lease[] | undefined;
  /** Names of nodes with an active NodeMaintenance (medik8s). */
  readonly inMaintenance: ReadonlySet<string>;
}

/** A cluster in which Shale is not installed. */
export const nothingObserved: ObservedCluster = {
  switchMap: undefined,
  operator: undefined,
  builder: undefined,
  page: undefined,
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
    .toSorted(by(({ metadata }) => metadata.name));
}

/**
 * Why a rollout skips a node, as far as the observed objects show it.
 *
 * @param now ms since the epoch.
 * @returns undefined when the rollout doesn't skip it.
 */
export function obstacleOf(
  cluster: Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes' | 'machineConfigNodes' | 'pools'>,
  node: string,
  now: number,
): string | undefined {
  const lease = cluster.leases && objectNamed(cluster.leases, leaseNameOf(node));
  const pool = objectNamed(cluster.machineConfigNodes, node)?.spec.pool.name ?? '';
  const seen = {
    node: objectNamed(cluster.nodes, node) ?? { apiVersion: 'v1', kind: 'Node', metadata: { name: node } },
    lease: holdingOf(lease, defaultRolloutOptions.leaseHolder, now),
    inMaintenance: cluster.inMaintenance.has(node),
    updateCordoned: updatesCordoned(objectNamed(cluster.pools, pool)),
  };
  return holdersOf(seen, now)[0]?.message;
}

/** @returns why a node is in no pool although pools select it, and what to do; undefined where nothing is wrong. */
export function disputeOn(
  { nodes, pools }: Pick<ObservedCluster, 'nodes' | 'pools'>,
  name: string,
): string | undefined {
  const node = objectNamed(nodes, name);
  const claim = node === undefined ? undefined : poolOfNode(node, pools);
  return claim === undefined || claim.ok ? undefined : formatDispute({ node: name, pools: claim.pools });
}

/**
 * Warnings before a rollout.
 *
 * @param now ms since the epoch.
 * @returns a line for each node of the pools that the rollout skips, or that already counts towards maxUnavailable.
 */
export function obstaclesOf(
  cluster: Pick<ObservedCluster, 'leases' | 'inMaintenance' | 'nodes' | 'machineConfigNodes' | 'pools'>,
  pools: readonly string[],
  now: number,
): string[] {
  const members = cluster.machineConfigNodes.filter(({ spec }) => pools.includes(spec.pool.name));
  const nodes = new Map(cluster.nodes.map((node) => [node.metadata.name, node]));
  return members.flatMap((member) => {
    const { name } = member.metadata;
    // It takes no part in the rollout, and a plan says so.
    if (unsupportedBecause(member) !== undefined) return [];
    const why = obstacleOf(cluster, name, now);
    if (why !== undefined) return [`node ${name} is skipped: ${why}`];
    const outOfService = outOfServiceBecause(nodes.get(name));
    return outOfService === undefined
      ? []
      : [`node ${name} already counts towards maxUnavailable: ${outOfService}`];
  });
}

/** A node that Shale itself has cordoned is not an obstacle. */
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
