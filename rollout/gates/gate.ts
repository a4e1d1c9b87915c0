import type { Grant } from '../../api/machine-config-node.ts';
import type { Halt } from '../pools/failures.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import type { Hold, StartHold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

/**
 * One reason for which updates wait. The list in gates.ts names all of them, each in a file of its own; the others here
 * are the types: gate.ts, gate-inputs.ts, hold.ts and seen-node.ts. A gate states in its parameters what it reads.
 */
export type Gate = PoolGate | NodeGate | HolderGate | StartGate | TimeGate | DisruptionGate;

/** An admin closed the pool: nothing starts in it, and what has no grant yet is put back. */
export interface PoolGate {
  readonly kind: 'pool';
  readonly hold: (pool: Pick<PoolObservation, 'pool' | 'settings'>) => Hold | undefined;
}

/** The same for single nodes of a pool, by what the rollout itself found. */
export interface NodeGate {
  readonly kind: 'node';
  readonly hold: (context: GateContext, node: NodeState) => Hold | undefined;
}

/** Somebody else holds the node: it is skipped and reported, and what has no grant yet is put back. */
export interface HolderGate {
  readonly kind: 'holder';
  /** @param now ms since the epoch. */
  readonly hold: (seen: SeenNode, now: number) => Hold | undefined;
}

/**
 * What ends a hold: the progress of rollouts and reboots, or time; somebody outside of them, who may take long; an
 * admin's change alone.
 */
export type EndedBy = 'progress' | 'others' | 'admin';

/** The reasons of a gate's holds, which are those of the condition UpdatesHeld and of its metric. */
export type HoldReasons = Readonly<Record<string, EndedBy>>;

/**
 * Delays the start of nodes that were chosen, until others have proven the target. What has started is finished, and
 * what undoes a change doesn't wait (delay-starts.ts). It delays arming, too: from then on any reboot applies the
 * target.
 */
export interface StartGate {
  readonly kind: 'start';
  readonly reasons: HoldReasons;
  /** @param nodes those that were chosen and may be delayed, at least one. */
  readonly hold: (context: GateContext, nodes: readonly NodeState[]) => StartHold | undefined;
}

/** Delays what Shale itself starts on a node, whatever it is for. What reboots by others is not delayed. */
export interface TimeGate {
  readonly kind: 'time';
  /** @returns whether the node doesn't wait. */
  readonly isFree: (context: GateContext, node: NodeState, level: Grant['level']) => boolean;
  /** Only asked where a node waits. */
  readonly hold: (context: GateContext) => Hold | undefined;
}

/**
 * Delays each drain and reboot that Shale itself starts, whatever it is for: what it protects is disrupted by a
 * rollback as well. It is asked last, about the nodes that nothing else holds.
 */
export interface DisruptionGate {
  readonly kind: 'disruption';
  readonly reasons: HoldReasons;
  /** Whether a node that is being drained is put back when the gate is closed; otherwise it stays cordoned. */
  readonly backsOut: boolean;
  /** @param nodes those that would be drained or rebooted now, at least one. */
  readonly hold: (context: GateContext, nodes: readonly NodeState[]) => StartHold | undefined;
}

/** A pool at one moment. */
export interface GateContext extends Omit<PoolObservation, 'settled'> {
  /** Every node that was looked at and has a MachineConfigNode, with its target assigned. */
  readonly states: readonly NodeState[];
  /** How many further nodes run the target. */
  readonly settled: number;
  readonly halt: Halt;
  /** ms since the epoch. */
  readonly now: number;
}
