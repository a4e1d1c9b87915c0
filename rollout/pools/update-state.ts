import type {
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
  NodeConditionType,
} from '../../api/machine-config-node.ts';
import type { Condition } from '../../api/object.ts';
import {
  type DaemonStage,
  failureAtTarget,
  hasHeld,
  isUngranted,
  type LiveFailure,
  liveFailureOf,
  type Progress,
  progressOf,
  stageOf,
} from './progress.ts';

/** What a node is to run, and how far its daemon is with it. */
export interface UpdateState {
  /** Whether the spec has the target that the pool has for this node. */
  readonly assigned: boolean;
  readonly progress: Progress;
  /** What the daemon does of a granted update. Absent: nothing. */
  readonly stage?: DaemonStage | undefined;
  /** Set if a target is the node's next boot, or may be: of which kind that is. */
  readonly nextBoot?: NextBootState | undefined;
  /** Set if the live update to the target failed. */
  readonly liveFailure?: LiveFailure | undefined;
  /** Whether its last update failed, at the target that it has now. */
  readonly failedAtTarget: boolean;
  /** What the API server refuses to the node's daemon; absent: nothing. */
  readonly daemonFails?: string | undefined;
}

export interface NextBootState {
  /** The operator permits it for the target that the node has. */
  readonly permitted: boolean;
  /** The daemon reports it, of that target or of an earlier one. */
  readonly armed: boolean;
}

/** @returns how far the node's update is. */
export function updateOf({
  spec,
  status,
  assigned,
  permitted = false,
}: {
  readonly spec: MachineConfigNodeSpec;
  readonly status: MachineConfigNodeStatus | undefined;
  readonly assigned: boolean;
  readonly permitted?: boolean;
}): UpdateState {
  return {
    assigned,
    progress: progressOf(spec, status),
    stage: stageOf(status?.conditions),
    nextBoot: nextBootOf(permitted, status),
    liveFailure: liveFailureOf(spec, status),
    failedAtTarget: failureAtTarget(spec, status) !== undefined,
    daemonFails: failureOf(status?.conditions, 'DaemonStepsFailing'),
  };
}

function nextBootOf(
  permitted: boolean,
  status: MachineConfigNodeStatus | undefined,
): NextBootState | undefined {
  const armed = status?.plan?.nextBoot === true;
  return permitted || armed ? { permitted, armed } : undefined;
}

/**
 * Only a granted update that succeeded as it was planned proves the target. A reboot after a failed live update does
 * not, nor does a boot without a grant, by which a rollout that has stopped or is paused would go on.
 *
 * @param soak ms for which an update must have held before it counts as proof.
 * @param now ms since the epoch.
 * @returns whether the node shows that the target works.
 */
export function provesTarget(
  { assigned, progress, liveFailure }: UpdateState,
  soak: number,
  now: number,
): boolean {
  return assigned && liveFailure === undefined && !isUngranted(progress) && hasHeld(progress, soak, now);
}

/** @returns what operator and daemon can't do on a node, in the words of the API server. */
export function failuresOn(conditions: readonly Condition[] | undefined): string[] {
  return [failureOf(conditions, 'StepsFailing'), failureOf(conditions, 'DaemonStepsFailing')].filter(
    (each) => each !== undefined,
  );
}

function failureOf(conditions: readonly Condition[] | undefined, of: NodeConditionType): string | undefined {
  const failing = conditions?.find(({ type }) => type === of);
  return failing?.status === 'True' ? failing.message : undefined;
}
