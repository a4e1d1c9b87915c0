import type { ConfigMap, Deployment, Lease, Node } from '../api/kubernetes.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { by } from '../api/order.ts';
import { formatDispute } from '../machineconfig/pool-disputes.ts';
import { poolOfNode } from '../machineconfig/pools.ts';
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

/** @returns whether a process of a Deployment runs, and is ready. */
export function isAvailable(deployment: Deployment | undefined): boolean {
  return (deployment?.status?.availableReplicas ?? 0) > 0;
}

/** @returns the MachineConfigNodes that belong to a pool, by name. */
export function nodesOfPool(
  { machineConfigNodes }: Pick<ObservedCluster, 'machineConfigNodes'>,
  pool: string,
): readonly MachineConfigNode[] {
  return machineConfigNodes
    .filter(({ spec }) => spec.pool.name === pool)
    .toSorted(by(({ metadata }) => metadata.name));
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
