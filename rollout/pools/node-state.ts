import { kernelBootID } from '../../api/boot-id.ts';
import type { Node } from '../../api/kubernetes.ts';
import type {
  Grant,
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
  NodeConditionType,
} from '../../api/machine-config-node.ts';
import { annotations, labels } from '../../api/names.ts';
import type { NodeStateName } from '../../api/node-state.ts';
import type { Condition } from '../../api/object.ts';
import { deletion } from '../gates/deletion.ts';
import type { Hold } from '../gates/hold.ts';
import { poweredOff } from '../gates/powered-off.ts';
import type { SeenNode } from '../gates/seen-node.ts';
import type { LeaseHolding } from '../node-leases.ts';
import { type HookRequest, hookRequestOn } from './hooks.ts';
import { type StartupState, startupOf } from './new-node.ts';
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

/**
 * Only a granted update that succeeded as it was planned proves the target. A reboot after a failed live update does
 * not, nor does a boot without a grant, by which a rollout that has stopped or is paused would go on.
 *
 * @param soak ms for which an update must have held before it counts as proof.
 * @param now ms since the epoch.
 * @returns whether the node shows that the target works.
 */
export function provesTarget(
  { assigned, progress, liveFailure }: Pick<NodeState, 'assigned' | 'progress' | 'liveFailure'>,
  soak: number,
  now: number,
): boolean {
  return assigned && liveFailure === undefined && !isUngranted(progress) && hasHeld(progress, soak, now);
}

/** The rollout's work on a node, read from the objects alone, so that a restart loses nothing. */
export interface Work {
  /** Cordoned under our annotation; `uncordon` when it was schedulable before. */
  readonly cordon: { readonly uncordon: boolean } | undefined;
  readonly grant: Grant['level'] | undefined;
}

/** Why a node does not take part now: it receives the current target when it comes back, if it does. */
export interface Away {
  readonly kind: 'switched-off' | 'being-deleted';
  readonly why: string;
}

/** One node of a pool, as the deciders see it. */
export interface NodeState {
  readonly name: string;
  readonly zone: string;
  /** RFC 3339, as the API server wrote it. */
  readonly createdAt: string;
  readonly controlPlane: boolean;
  /** GOARCH; absent where the kubelet has not reported it. */
  readonly architecture?: string | undefined;
  readonly ready: boolean;
  /** ms since the epoch; absent on a node that is Ready or has never reported. */
  readonly notReadySince?: number;
  readonly schedulable: boolean;
  /** Set on a node with a startup taint. */
  readonly startup?: StartupState | undefined;
  /** The kubelet and the daemon report the same boot. */
  readonly bootAgrees: boolean;
  /** The node has an active NodeMaintenance (medik8s), whether or not it is cordoned yet. */
  readonly inMaintenance: boolean;
  /** Who else holds the node, so that it is not to be disrupted now; the first one is reported. */
  readonly holders: readonly Hold[];
  /** Set on a node that the rollout does not wait for and whose state is no failure. */
  readonly away: Away | undefined;
  readonly lease: LeaseHolding;
  readonly work: Work;
  /** What is requested of hooks on the node; absent: nothing. */
  readonly hooks?: HookRequest | undefined;
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

export interface NodeObservation extends SeenNode {
  readonly spec: MachineConfigNodeSpec;
  readonly status: MachineConfigNodeStatus | undefined;
  readonly assigned: boolean;
  /** Whether the node may make its target the next boot, so far. Absent: no. */
  readonly permitted?: boolean;
  /** Who else holds the node (gates.ts). */
  readonly holders: readonly Hold[];
}

/** Topology label of well-known meaning (kubernetes.io/docs/reference/labels-annotations-taints). */
const ZONE = 'topology.kubernetes.io/zone';
const CONTROL_PLANE_ROLES = [`${labels.nodeRolePrefix}control-plane`, `${labels.nodeRolePrefix}master`];

/** Reads one node. */
export function readNode(observation: NodeObservation): NodeState {
  const { node, spec, status } = observation;
  const { metadata } = node;
  const controlPlane = isControlPlane(node);
  return {
    name: metadata.name,
    zone: metadata.labels?.[ZONE] ?? '',
    createdAt: metadata.creationTimestamp ?? '',
    controlPlane,
    architecture: node.status?.nodeInfo?.architecture,
    startup: startupOf(node, controlPlane),
    hooks: hookRequestOn(node),
    ...readiness(node),
    schedulable: node.spec?.unschedulable !== true,
    bootAgrees: bootAgrees(node, status),
    inMaintenance: observation.inMaintenance,
    holders: observation.holders,
    away: awayOf(observation),
    lease: observation.lease,
    work: workOn(node, spec),
    assigned: observation.assigned,
    progress: progressOf(spec, status),
    stage: stageOf(status?.conditions),
    liveFailure: liveFailureOf(spec, status),
    nextBoot: nextBootOf(observation),
    failedAtTarget: failureAtTarget(spec, status) !== undefined,
    daemonFails: failureOf(status?.conditions, 'DaemonStepsFailing'),
  };
}

/** After a soft reboot the kubelet reports the same boot; the daemon has waited for its next heartbeat by then. */
function bootAgrees({ status }: Node, daemon: MachineConfigNodeStatus | undefined): boolean {
  const [kubelet, own] = [status?.nodeInfo?.bootID, daemon?.bootID];
  return kubelet === undefined || own === undefined || kubelet === kernelBootID(own);
}

/** @returns the state of a node that a daemon manages, the same wherever it is shown. */
export function stateNameOf({
  progress,
  stage,
  work,
}: Pick<NodeState, 'progress' | 'stage' | 'work'>): NodeStateName {
  if (progress.kind === 'degraded' || progress.kind === 'updated') return progress.kind;
  if (progress.kind === 'preparing' && progress.stalled === 'silent') return 'silent';
  if (stage !== undefined) return stage.kind;
  if (progress.kind === 'preparing') return 'staging';
  if (work.grant !== undefined) return 'applying';
  return work.cordon === undefined ? 'staged' : 'draining';
}

/** @returns whether the node runs the target of its pool. */
export function isUpdated({ assigned, progress }: NodeState): boolean {
  return assigned && progress.kind === 'updated';
}

/** @returns whether nothing waits for the node. */
export function isAway({ away }: NodeState): boolean {
  return away !== undefined;
}

/** @returns whether the node takes part, and its update failed or it was changed by hand. */
export function isDegraded({ away, progress }: NodeState): boolean {
  return away === undefined && progress.kind === 'degraded';
}

/** @returns whether the node may apply its target: by a grant, or at its next boot. */
export function mayApply({ work, nextBoot }: Pick<NodeState, 'work' | 'nextBoot'>): boolean {
  return work.grant !== undefined || nextBoot?.permitted === true;
}

/** @returns whether the node has a role of the control plane. */
export function isControlPlane({ metadata }: Pick<Node, 'metadata'>): boolean {
  return CONTROL_PLANE_ROLES.some((role) => metadata.labels?.[role] !== undefined);
}

/** @returns {@link isNew} of a node whose state was not read. */
export function isNewNode(node: Node): boolean {
  return startupOf(node, isControlPlane(node))?.isNew === true;
}

function nextBootOf({ permitted = false, status }: NodeObservation): NextBootState | undefined {
  const armed = status?.plan?.nextBoot === true;
  return permitted || armed ? { permitted, armed } : undefined;
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

/** A grant for another target than the one desired is none (api/machine-config-node.ts). */
function validGrant({
  grant,
  configVersion,
  configImage,
}: MachineConfigNodeSpec): Grant['level'] | undefined {
  return grant?.config === configVersion.desired && grant.image === configImage?.desiredImage
    ? grant.level
    : undefined;
}

/** @returns what the rollout has under way on a node. */
export function workOn(node: Node, spec: MachineConfigNodeSpec): Work {
  return { cordon: cordonOf(node), grant: validGrant(spec) };
}

function cordonOf(node: Node): Work['cordon'] {
  const mark = node.metadata.annotations?.[annotations.cordonedByShale];
  return mark === undefined ? undefined : { uncordon: mark === 'true' };
}

/** @returns whether the node's kubelet says that it can run pods, as far as the cluster knows. */
export function isReady(node: Node): boolean {
  return readyCondition(node)?.status === 'True';
}

function readiness(node: Node): Pick<NodeState, 'ready' | 'notReadySince'> {
  const condition = readyCondition(node);
  if (condition === undefined || condition.status === 'True') return { ready: condition !== undefined };
  return { ready: false, notReadySince: Date.parse(condition.lastTransitionTime) };
}

function readyCondition({ status }: Node) {
  return status?.conditions?.find(({ type }) => type === 'Ready');
}

/** @returns why nothing waits for the node; undefined where it is expected to take part. */
export function awayOf(observed: Pick<NodeObservation, 'node' | 'machineDeleting'>): Away | undefined {
  const deleted = deletion.hold(observed);
  if (deleted !== undefined) return { kind: 'being-deleted', why: deleted.message };
  const off = poweredOff.hold(observed);
  return off === undefined || isReady(observed.node) ? undefined : { kind: 'switched-off', why: off.message };
}
