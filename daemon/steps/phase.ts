import {
  FailureReason,
  PREPARE_FAILED,
  PREPARE_REFUSED,
  type UpdatePlan,
} from '../../api/machine-config-node.ts';
import type { Drift } from '../content/drift/drift.ts';
import type { ImagePolicyState } from '../os/image-policy/keep-image-policy.ts';
import type { NodeDrift } from './node-drift.ts';
import type { Observation } from './step.ts';

/** Where the node is on its way to its target. */
export type Phase =
  | { readonly kind: 'updated' }
  /** The node runs its target, and what differs from that is in `why`. */
  | ({ readonly kind: 'drifted' } & NodeDrift)
  /**
   * The target is brought to the disk. `problem`: what keeps it from there; it is tried again. `refused`: and is in
   * vain until somebody changes what it names. `byHand`: where that is the node's disk.
   */
  | {
      readonly kind: 'preparing';
      readonly staging?: { readonly bytesDone: number; readonly bytesTotal: number };
      readonly problem?: string;
      readonly refused?: boolean;
      readonly byHand?: readonly Drift[] | undefined;
    }
  /** Nothing is staged, because somebody else holds the node. */
  | { readonly kind: 'held'; readonly why: string }
  /** Prepared. `why`: what it waits for. */
  | { readonly kind: 'waiting'; readonly plan: UpdatePlan; readonly why: string }
  /** The next boot is the target; who reboots the node is somebody else. */
  | { readonly kind: 'armed'; readonly plan: UpdatePlan }
  /** The running system is changed. */
  | { readonly kind: 'applying'; readonly plan: UpdatePlan; readonly doing: string }
  | { readonly kind: 'rebooting'; readonly plan: UpdatePlan }
  /**
   * The target has booted, and is to be found healthy. `doing`: what it waits for. `failed`: the health check that
   * fails. `leftMs`: how long it may; absent: for as long as it takes.
   */
  | {
      readonly kind: 'verifying';
      readonly plan: UpdatePlan;
      readonly doing: string;
      readonly failed?: { readonly check: string; readonly output: string };
      readonly leftMs?: number;
    }
  /** The target is not healthy, and the node rolls back to what ran before. */
  | {
      readonly kind: 'rollingBack';
      readonly plan: UpdatePlan;
      readonly why: string;
      readonly reason: FailureReason;
    }
  | { readonly kind: 'degraded'; readonly why: string; readonly reason: FailureReason };

/** What the daemon knows of its node. */
export interface NodeReport extends Reported {
  readonly phase: Phase;
  /** Undefined until it was looked at. */
  readonly imagePolicy: ImagePolicyState | undefined;
}

type Reported = Pick<
  Observation,
  | 'generation'
  | 'current'
  | 'bootID'
  | 'bootedImage'
  | 'certificates'
  | 'withheld'
  | 'lastUpdate'
  | 'lastRepair'
  | 'osBackend'
>;

/** Where the node is; degraded too where the daemon can't tell. */
export const NODE_STATES = [
  'updated',
  'drifted',
  'preparing',
  'held',
  'waiting',
  'armed',
  'applying',
  'rebooting',
  'verifying',
  'rollingBack',
  'degraded',
] as const satisfies readonly Phase['kind'][];
export type DaemonState = (typeof NODE_STATES)[number];

/** What keeps a node from its target, as the reason of its condition has it. */
export const PROBLEMS = [
  PREPARE_FAILED,
  PREPARE_REFUSED,
  ...FailureReason.options,
  'UnsupportedHost',
  'DaemonFailed',
] as const;
export type PhaseProblem = (typeof PROBLEMS)[number];

/** @returns where a node in that phase is, and what keeps it there. */
export function stateOf(phase: Phase): readonly [DaemonState, PhaseProblem?] {
  switch (phase.kind) {
    case 'degraded':
    case 'rollingBack':
    case 'drifted':
      return [phase.kind, phase.reason];
    case 'preparing':
      if (phase.problem === undefined) return ['preparing'];
      return ['preparing', phase.refused === true ? PREPARE_REFUSED : PREPARE_FAILED];
    default:
      return [phase.kind];
  }
}
