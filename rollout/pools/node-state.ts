import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type {
  Grant,
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
  NodeConditionType,
} from '../../api/machine-config-node.ts';
import { annotations, labels } from '../../api/names.ts';

/** How far a node is on its way to its target, as its daemon tells it. */
export type Progress =
  /** The target is not on the disk yet, or the daemon has not spoken since it was set. */
  | { readonly kind: 'preparing'; readonly why?: string }
  /** The target is on the disk; these actions are what it takes to run it. */
  | { readonly kind: 'staged'; readonly actions: readonly DisruptionAction[] }
  /** The node runs its target. `since`: when its last update ended, in ms since the epoch. */
  | { readonly kind: 'updated'; readonly since?: number }
  | { readonly kind: 'degraded'; readonly why: string; readonly since: number };

/** Who holds the node lease. */
export type LeaseHolding =
  | { readonly by: 'nobody' | 'us' }
  | { readonly by: 'other'; readonly holder: string };

/** What the rollout has under way on a node, read from the objects alone, so that a restart loses nothing. */
export interface Work {
  /** Cordoned under our annotation; `uncordon` when it was schedulable before. */
  readonly cordon: { readonly uncordon: boolean } | undefined;
  readonly grant: Grant['level'] | undefined;
}

/** One node of a pool, as the deciders see it. */
export interface NodeState {
  readonly name: string;
  readonly zone: string;
  /** RFC 3339, as the API server wrote it. */
  readonly createdAt: string;
  readonly controlPlane: boolean;
  readonly ready: boolean;
  readonly schedulable: boolean;
  /** The kubelet speaks from the boot that the daemon speaks from. */
  readonly bootAgrees: boolean;
  /** Why the node is not to be disrupted now, where that is so. */
  readonly obstacle: string | undefined;
  readonly lease: LeaseHolding;
  readonly work: Work;
  /** Whether the spec states what the pool wants of this node. */
  readonly assigned: boolean;
  readonly progress: Progress;
}

export interface NodeObservation {
  readonly node: Node;
  readonly spec: MachineConfigNodeSpec;
  readonly status: MachineConfigNodeStatus | undefined;
  readonly assigned: boolean;
  readonly lease: LeaseHolding;
  /** The node has an active NodeMaintenance (medik8s). */
  readonly inMaintenance: boolean;
}

/** Topology label of well-known meaning (kubernetes.io/docs/reference/labels-annotations-taints). */
const ZONE = 'topology.kubernetes.io/zone';
const CONTROL_PLANE_ROLES = [`${labels.nodeRolePrefix}control-plane`, `${labels.nodeRolePrefix}master`];
/** Set by the cluster autoscaler on a node it is about to delete. */
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';

/**
 * Reads one node.
 *
 * @param now ms since the epoch; decides whether a planned maintenance is over.
 */
export function readNode(seen: NodeObservation, now: number): NodeState {
  const { node, spec, status } = seen;
  const { metadata } = node;
  const kubeletBoot = node.status?.nodeInfo?.bootID;
  return {
    name: metadata.name,
    zone: metadata.labels?.[ZONE] ?? '',
    createdAt: metadata.creationTimestamp ?? '',
    controlPlane: CONTROL_PLANE_ROLES.some((role) => metadata.labels?.[role] !== undefined),
    ready: (node.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True'),
    schedulable: node.spec?.unschedulable !== true,
    bootAgrees: kubeletBoot === undefined || status?.bootID === undefined || kubeletBoot === status.bootID,
    obstacle: obstacleOf(seen, now),
    lease: seen.lease,
    work: { cordon: cordonOf(node), grant: validGrant(spec) },
    assigned: seen.assigned,
    progress: progressOf(spec, status),
  };
}

/** @returns whether the actions need the node to be empty: such a plan uses one of the pool's maxUnavailable. */
export function isDisruptive(actions: readonly DisruptionAction[]): boolean {
  return actions.some(({ type }) => type === 'Drain' || type === 'Reboot');
}

/** @returns whether the node runs its target: the status names it, and nothing is left to do. */
export function progressOf(
  spec: MachineConfigNodeSpec,
  status: MachineConfigNodeStatus | undefined,
): Progress {
  if (status === undefined) return { kind: 'preparing', why: 'the daemon has not reported yet' };
  const condition = (type: NodeConditionType) => status.conditions?.find((found) => found.type === type);
  const degraded = condition('NodeDegraded');
  if (degraded?.status === 'True') {
    return {
      kind: 'degraded',
      why: degraded.message || degraded.reason,
      since: Date.parse(degraded.lastTransitionTime),
    };
  }
  const image = spec.configImage?.desiredImage;
  const config = spec.configVersion.desired;
  const runsTarget =
    status.configVersion?.current === config &&
    status.configImage?.currentImage === image &&
    (status.mode === undefined || status.mode === (image === undefined ? 'Standard' : 'Layered'));
  if (runsTarget && condition('Updated')?.status === 'True') {
    const finishedAt = status.lastUpdate?.finishedAt;
    return { kind: 'updated', ...(finishedAt === undefined ? {} : { since: Date.parse(finishedAt) }) };
  }
  const { plan } = status;
  if (plan !== undefined && plan.config === config && plan.image === image && plan.staged) {
    return { kind: 'staged', actions: plan.actions };
  }
  const prepared = condition('UpdatePrepared');
  return prepared?.status === 'False' && prepared.message !== ''
    ? { kind: 'preparing', why: prepared.message }
    : { kind: 'preparing' };
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

function cordonOf(node: Node): Work['cordon'] {
  const mark = node.metadata.annotations?.[annotations.cordonedByShale];
  return mark === undefined ? undefined : { uncordon: mark === 'true' };
}

function obstacleOf({ node, inMaintenance }: NodeObservation, now: number): string | undefined {
  return inMaintenance ? 'a NodeMaintenance is active' : maintenanceOf(node, now);
}

/**
 * @param now ms since the epoch.
 * @returns why a rollout passes a node by, as the Node itself says it; undefined when nothing stands in its way.
 */
export function maintenanceOf(node: Node, now: number): string | undefined {
  if (node.metadata.deletionTimestamp !== undefined) return 'the node is being deleted';
  if (node.spec?.taints?.some(({ key }) => key === TO_BE_DELETED))
    return 'the cluster autoscaler is about to delete the node';
  const planned = node.metadata.annotations?.[annotations.plannedMaintenance];
  return planned === undefined ? undefined : plannedMaintenance(planned, now);
}

/** An annotation that can't be read still says that somebody wants the node left alone. */
function plannedMaintenance(text: string, now: number): string | undefined {
  const unreadable = `flagged for maintenance (annotation ${annotations.plannedMaintenance})`;
  let flag: unknown;
  try {
    flag = JSON.parse(text);
  } catch {
    return unreadable;
  }
  if (typeof flag !== 'object' || flag === null) return unreadable;
  const field = (name: string) => {
    const value = (flag as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'string' ? value : '';
  };
  if (Date.parse(field('until')) <= now) return undefined;
  const by = field('by') === '' ? '' : ` by ${field('by')}`;
  const reason = field('reason') === '' ? '' : `: ${field('reason')}`;
  return `flagged for maintenance${by}${reason}`;
}
