import type { DisruptionAction } from '../../api/disruption-action.ts';
import {
  type MachineConfigNodeSpec,
  type MachineConfigNodeStatus,
  NOT_YET,
  type NodeConditionType,
  PREPARE_FAILED,
  PREPARE_REFUSED,
  ROLLING_BACK,
  type UpdatePlan,
  type UpdateRecord,
} from '../../api/machine-config-node.ts';
import { type Condition, isReported } from '../../api/object.ts';

/**
 * Why a target is not being staged. `refused`: it won't be until an admin changes what the daemon names; the node keeps
 * what it runs. `failed`: the daemon tries again. `silent`: the daemon has never reported.
 */
type Stall = 'refused' | 'failed' | 'silent';

/** The progress of a node towards its target, as its daemon reports it. */
export type Progress =
  /**
   * The target is not staged yet, or the daemon has not reported since it was assigned. `why` is what the daemon does,
   * or what it is stalled by.
   */
  | { readonly kind: 'preparing'; readonly why?: string; readonly stalled?: Stall | undefined }
  /** The target is staged; these actions are required to run it. */
  | { readonly kind: 'staged'; readonly actions: readonly DisruptionAction[] }
  /**
   * The node runs its target. `startedAt` and `since`: when its last update began and ended, in ms since the epoch.
   * `withoutGrant`: it booted the target although the rollout had not come to it.
   */
  | {
      readonly kind: 'updated';
      readonly startedAt?: number | undefined;
      readonly since?: number | undefined;
      readonly withoutGrant?: true;
    }
  /** `ofAnother`: an earlier target failed, and the daemon has not tried this one yet. */
  | {
      readonly kind: 'degraded';
      readonly why: string;
      readonly since: number;
      readonly ofAnother?: boolean | undefined;
    };

/** What the daemon does to take a target that it was granted: the condition of that step is Unknown meanwhile. */
export interface DaemonStage {
  readonly kind: 'applying' | 'rebooting' | 'verifying';
  readonly condition: Condition;
}

/** No more than one of them is Unknown at a time (daemon/status.ts). */
const STAGES: readonly (readonly [NodeConditionType, DaemonStage['kind']])[] = [
  ['RebootedNode', 'rebooting'],
  ['UpdatePostActionComplete', 'verifying'],
  ['UpdateExecuted', 'applying'],
];

/** @returns what the daemon is doing; undefined where it applies nothing. */
export function stageOf(conditions: readonly Condition[] | undefined): DaemonStage | undefined {
  for (const [type, kind] of STAGES) {
    const condition = conditions?.find((each) => each.type === type);
    if (condition?.status === 'Unknown') return { kind, condition };
  }
  return undefined;
}

/** @returns whether the daemon rolls an update back, of which the record says nothing until that has ended. */
export function isRollingBack(stage: DaemonStage | undefined): boolean {
  return stage?.condition.reason === ROLLING_BACK;
}

/** @returns whether the node runs its target: the status names it, and nothing is left to do. */
export function progressOf(
  spec: MachineConfigNodeSpec,
  status: MachineConfigNodeStatus | undefined,
): Progress {
  const { irreconcilable } = spec;
  if (!isReported(status))
    return irreconcilable === undefined
      ? { kind: 'preparing', why: 'the daemon has not reported yet', stalled: 'silent' }
      : { kind: 'preparing', why: irreconcilable, stalled: 'refused' };
  const condition = (type: NodeConditionType) =>
    status.conditions?.find((candidate) => candidate.type === type);
  const degraded = condition('NodeDegraded');
  if (degraded?.status === 'True') {
    return {
      kind: 'degraded',
      why: degraded.message || degraded.reason,
      since: Date.parse(degraded.lastTransitionTime),
      ofAnother: failedAtAnother(spec, status) || undefined,
    };
  }
  const image = spec.configImage?.desiredImage;
  const config = spec.configVersion.desired;
  if (isAtTarget(spec, status) && condition('Updated')?.status === 'True') {
    const { startedAt, finishedAt, withoutGrant } = status.lastUpdate ?? {};
    return {
      kind: 'updated',
      startedAt: parseTime(startedAt),
      since: parseTime(finishedAt),
      ...(withoutGrant === true ? { withoutGrant } : {}),
    };
  }
  if (irreconcilable !== undefined) return { kind: 'preparing', why: irreconcilable, stalled: 'refused' };
  const { plan } = status;
  if (plan !== undefined && plan.config === config && plan.image === image && plan.staged) {
    return { kind: 'staged', actions: plan.actions };
  }
  return preparing(condition('UpdatePrepared'), status.configVersion?.desired === config);
}

/** @returns whether the status names what the spec has as the target, whether or not the update is complete. */
export function isAtTarget(
  { configVersion, configImage }: MachineConfigNodeSpec,
  status: MachineConfigNodeStatus = {},
): boolean {
  const mode = configImage === undefined ? 'Standard' : 'Layered';
  return (
    status.configVersion?.current === configVersion.desired &&
    status.configImage?.currentImage === configImage?.desiredImage &&
    (status.mode === undefined || status.mode === mode)
  );
}

function parseTime(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

const STALLS: Readonly<Partial<Record<string, Stall>>> = {
  [PREPARE_REFUSED]: 'refused',
  [PREPARE_FAILED]: 'failed',
};

/**
 * @param prepared the condition UpdatePrepared. @returns whether it reports that the daemon stages a target, or can't.
 */
export function isStaging(prepared: Condition | undefined): prepared is Condition {
  return prepared?.status === 'False' && prepared.reason !== NOT_YET;
}

/** @param isOfThis whether the daemon reports about the target that is assigned now. */
function preparing(prepared: Condition | undefined, isOfThis: boolean): Progress {
  if (!isStaging(prepared) || prepared.message === '') return { kind: 'preparing' };
  return {
    kind: 'preparing',
    why: prepared.message,
    stalled: isOfThis ? STALLS[prepared.reason] : undefined,
  };
}

/** The daemon keeps NodeDegraded until another target is on the disk, and its record names the one that failed. */
function failedAtAnother(spec: MachineConfigNodeSpec, { lastUpdate }: MachineConfigNodeStatus): boolean {
  return lastUpdate !== undefined && lastUpdate.result !== 'Succeeded' && !isOfTarget(spec, lastUpdate);
}

/** @returns the node's last update, where it failed at the very target that the node has now. */
export function failureAtTarget(
  spec: MachineConfigNodeSpec,
  { lastUpdate }: MachineConfigNodeStatus = {},
): UpdateRecord | undefined {
  const isFailure =
    lastUpdate !== undefined && lastUpdate.result !== 'Succeeded' && isOfTarget(spec, lastUpdate);
  return isFailure ? lastUpdate : undefined;
}

function isOfTarget(
  { configVersion, configImage }: MachineConfigNodeSpec,
  of: Pick<UpdatePlan | UpdateRecord, 'config' | 'image'>,
): boolean {
  return of.config === configVersion.desired && of.image === configImage?.desiredImage;
}

/**
 * @param soak ms for which an update must have held before it counts as proof.
 * @param now ms since the epoch.
 * @returns whether the node runs its target and has done so for that long; one whose time is not known has.
 */
export function hasHeld(progress: Progress, soak: number, now: number): boolean {
  return progress.kind === 'updated' && (progress.since === undefined || progress.since + soak <= now);
}

/** @returns whether the node runs its target without having been granted it. */
export function isUngranted(progress: Progress): boolean {
  return progress.kind === 'updated' && progress.withoutGrant === true;
}

/** A live update that failed, so that the node reboots into its target or has done so. */
export interface LiveFailure {
  readonly why: string;
  /** When that reboot was complete, in ms since the epoch; absent while it is to come. */
  readonly endedAt?: number | undefined;
}

/** What a plan or a record says of an earlier target doesn't count. */
export function liveFailureOf(
  spec: MachineConfigNodeSpec,
  { plan, lastUpdate }: MachineConfigNodeStatus = {},
): LiveFailure | undefined {
  if (plan?.liveFailure !== undefined && isOfTarget(spec, plan)) return { why: plan.liveFailure };
  if (lastUpdate?.liveFailure === undefined || !isOfTarget(spec, lastUpdate)) return undefined;
  return { why: lastUpdate.liveFailure, endedAt: parseTime(lastUpdate.finishedAt) };
}
