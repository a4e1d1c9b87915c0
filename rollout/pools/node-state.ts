import type { MachineConfigNodeSpec, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { NodeStateName } from '../../api/node-state.ts';
import type { SeenNode } from '../gates/seen-node.ts';
import { claimsOn, type NodeClaims } from './claims.ts';
import { isControlPlane } from './new-node.ts';
import { type NodeAvailability, nodeAvailability } from './node-availability.ts';
import { type UpdateState, updateOf } from './update-state.ts';
import { type Work, workOn } from './work.ts';

/** One node of a pool, as the deciders see it. */
export interface NodeState {
  readonly name: string;
  readonly zone: string;
  /** RFC 3339, as the API server wrote it. */
  readonly createdAt: string;
  readonly controlPlane: boolean;
  /** GOARCH; absent where the kubelet has not reported it. */
  readonly architecture?: string | undefined;
  readonly availability: NodeAvailability;
  readonly claims: NodeClaims;
  readonly work: Work;
  readonly update: UpdateState;
}

export interface NodeObservation extends SeenNode, Pick<NodeClaims, 'holders' | 'handover'> {
  readonly spec: MachineConfigNodeSpec;
  readonly status: MachineConfigNodeStatus | undefined;
  readonly assigned: boolean;
  /** Whether the node may make its target the next boot, so far. Absent: no. */
  readonly permitted?: boolean;
}

/** Topology label of well-known meaning (kubernetes.io/docs/reference/labels-annotations-taints). */
const ZONE = 'topology.kubernetes.io/zone';

/** Reads one node. */
export function readNode(observation: NodeObservation): NodeState {
  const { node, spec, status } = observation;
  const { metadata } = node;
  return {
    name: metadata.name,
    zone: metadata.labels?.[ZONE] ?? '',
    createdAt: metadata.creationTimestamp ?? '',
    controlPlane: isControlPlane(node),
    architecture: node.status?.nodeInfo?.architecture,
    availability: nodeAvailability(node, status),
    claims: claimsOn(observation),
    work: workOn(node, spec),
    update: updateOf(observation),
  };
}

/** @returns the state of a node that a daemon manages, the same wherever it is shown. */
export function stateNameOf({
  update: { progress, stage },
  work,
}: Pick<NodeState, 'update' | 'work'>): NodeStateName {
  if (progress.kind === 'degraded' || progress.kind === 'updated') return progress.kind;
  if (progress.kind === 'preparing' && progress.stalled === 'silent') return 'silent';
  if (stage !== undefined) return stage.kind;
  if (progress.kind === 'preparing') return 'staging';
  if (work.grant !== undefined) return 'applying';
  return work.cordon === undefined ? 'staged' : 'draining';
}

/** @returns whether the node runs the target of its pool. */
export function isUpdated({ update: { assigned, progress } }: Pick<NodeState, 'update'>): boolean {
  return assigned && progress.kind === 'updated';
}

/** @returns whether nothing waits for the node. */
export function isAway({ claims: { away } }: Pick<NodeState, 'claims'>): boolean {
  return away !== undefined;
}

/** @returns whether the node takes part, and its update failed or it was changed by hand. */
export function isDegraded(node: Pick<NodeState, 'claims' | 'update'>): boolean {
  return !isAway(node) && node.update.progress.kind === 'degraded';
}

/** @returns whether the node may apply its target: by a grant, or at its next boot. */
export function mayApply({ work, update: { nextBoot } }: Pick<NodeState, 'work' | 'update'>): boolean {
  return work.grant !== undefined || nextBoot?.permitted === true;
}
