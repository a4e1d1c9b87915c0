import type { ConfigMap, Deployment, Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';

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
