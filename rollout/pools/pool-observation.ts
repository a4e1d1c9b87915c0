import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { WhyIrreconcilable } from '../../predict/node/irreconcilable-nodes.ts';
import type { GateInputs } from '../gates/gate-inputs.ts';
import { longestBake } from '../gates/waves.ts';
import type { LeaseHolding } from '../node-leases.ts';
import type { NodeTarget } from './node-target.ts';
import type { PoolRecord } from './pool-record.ts';
import { assignedSettings, type PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

export interface ObservedNode {
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly lease: LeaseHolding;
  readonly inMaintenance: boolean;
  readonly machineDeleting: boolean;
}

export interface PoolObservation {
  readonly pool: MachineConfigPool;
  readonly settings: PoolSettings;
  readonly target: PoolTarget;
  readonly rules: PoolRules;
  /** The pool's nodes without the settled ones. */
  readonly nodes: readonly ObservedNode[];
  /** Absent: none. */
  readonly settled?: SettledCount;
  /**
   * Finds the target of an automatic rollback, if one is known that worked; it asks every node, so only a
   * rollout that has stopped calls it. Absent if the pool doesn't roll back automatically.
   */
  readonly lastGood?: (() => NodeTarget | undefined) | undefined;
  /** What the pool's nodes may run; absent: nothing is recorded. */
  readonly record?: PoolRecord;
  readonly gateInputs: GateInputs;
}

/** What of the cluster is in force for every node of a pool. */
export interface PoolRules {
  /** Of the disruption policies. */
  readonly policyDigest: string | undefined;
  /** Version of the keys that images must be signed with; undefined until they are published. */
  readonly imageSigningKeys: string | undefined;
  /** Compares what a config asks with what a node runs. */
  readonly whyIrreconcilable: WhyIrreconcilable;
}

/**
 * Nodes that are counted without being read: each runs the target of its pool and is in service, and nothing is under
 * way.
 */
export interface SettledCount {
  readonly nodes: number;
  readonly architectures: ReadonlySet<string>;
}

export const noneSettled: SettledCount = { nodes: 0, architectures: new Set() };

/**
 * @returns everything about a pool that a settled node depends on, as one text: when it changes, each node has to be
 *   looked at again.
 */
export function fingerprintOf({
  pool,
  target,
  rules: { policyDigest, imageSigningKeys },
  settings,
}: Pick<PoolObservation, 'pool' | 'target' | 'rules' | 'settings'>): string {
  const desired = 'target' in target ? target.target : undefined;
  const same = 'sameContent' in target ? [...target.sameContent].sort() : [];
  const awaits = 'awaits' in target;
  return JSON.stringify([
    pool.metadata.uid,
    target.kind,
    desired,
    same,
    awaits,
    policyDigest,
    imageSigningKeys,
    settlesAfter(settings),
    assignedSettings(settings),
    settings.failureDomains,
  ]);
}

/** @returns ms that a node has to run the target before it is only counted: by then it has baked, too. */
export function settlesAfter({ soak, waves }: Pick<PoolSettings, 'soak' | 'waves'>): number {
  return Math.max(soak, longestBake(waves));
}
