import type { Lease, Node } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { holdersOf } from '../rollout/gates/gates.ts';
import type { SeenNode } from '../rollout/gates/seen-node.ts';
import { holdingOf, leaseNameOf } from '../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { handoverOf } from '../rollout/pools/handover.ts';
import { type NodeState, readNode } from '../rollout/pools/node-state.ts';
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

/** The objects about a node that a daemon manages. */
export interface ManagedNodeSource extends NodeSource {
  readonly machineConfigNode: MachineConfigNode;
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

/**
 * @param name of the node. @param now ms since the epoch.
 * @returns what shows who holds it. Whether its Machine is being deleted is not among the objects.
 */
export function seenNode(
  name: string,
  { node, lease, inMaintenance, pool }: Omit<NodeSource, 'dispute'>,
  now: number,
): SeenNode {
  return {
    node: node ?? absentNode(name),
    lease: holdingOf(lease, defaultRolloutOptions.leases.holder, now),
    inMaintenance,
    updateCordoned: updatesCordoned(pool),
  };
}

/** @returns a node as the operator's deciders see it. @param now ms since the epoch. */
export function readState(source: ManagedNodeSource, now: number): NodeState {
  const { metadata, spec, status } = source.machineConfigNode;
  const seen = seenNode(metadata.name, source, now);
  const handover = handoverOf(source.machineConfigNode);
  return readNode({ ...seen, holders: holdersOf(seen, now), spec, status, assigned: true, handover });
}

/** @param now ms since the epoch. @returns the same of a node that was observed. */
export function nodeStateOf(object: MachineConfigNode, cluster: NodesCluster, now: number): NodeState {
  return readState({ ...nodeSource(object.metadata.name, cluster), machineConfigNode: object }, now);
}

/** @returns whether nodes of the pool that others cordoned are updated, too. */
export function updatesCordoned(pool: MachineConfigPool | undefined): boolean {
  return pool !== undefined && settingOf(pool, 'updateCordoned');
}

/** Stands for a Node that doesn't exist while its MachineConfigNode does: never Ready. */
function absentNode(name: string): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name } };
}
