import type { Lease, Node } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { leaseNameOf } from '../rollout/node-leases.ts';
import { objectNamed } from './named.ts';
import { disputeOn, type ObservedCluster } from './observed-cluster.ts';

/** The objects about one node. */
export interface NodeSource {
  readonly node: Node | undefined;
  readonly machineConfigNode: MachineConfigNode | undefined;
  /** The pool that its MachineConfigNode names. */
  readonly pool: MachineConfigPool | undefined;
  readonly lease: Lease | undefined;
  readonly inMaintenance: boolean;
  /** Why it is in no pool although pools select it, and what to do. */
  readonly dispute: string | undefined;
}

/** The objects that the sources of nodes are found in. */
export type NodesCluster = Pick<
  ObservedCluster,
  'machineConfigNodes' | 'nodes' | 'pools' | 'leases' | 'inMaintenance'
>;

/** @returns what there is about a node. */
export function nodeSource(name: string, cluster: NodesCluster): NodeSource {
  const machineConfigNode = objectNamed(cluster.machineConfigNodes, name);
  const pool = machineConfigNode?.spec.pool.name;
  return {
    node: objectNamed(cluster.nodes, name),
    machineConfigNode,
    pool: pool === undefined ? undefined : objectNamed(cluster.pools, pool),
    lease: cluster.leases && objectNamed(cluster.leases, leaseNameOf(name)),
    inMaintenance: cluster.inMaintenance.has(name),
    dispute: disputeOn(cluster, name),
  };
}
