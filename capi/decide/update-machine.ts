import type { ClusterApiUpdate } from '../../api/annotation-requests.ts';
import { cutText } from '../../api/cut-text.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import {
  formatMachine,
  formatMachineOwner,
  isSameMachineReference,
  isSameOwner,
  type MachineOwner,
  type MachineReference,
} from '../../api/machine-owner.ts';
import { inOneLine } from '../../api/visible-text.ts';
import { handoverOf } from '../../rollout/pools/handover.ts';
import type { UpdateMachineAnswer } from '../contract/answers.ts';
import { isBeingUpdated, type Machine } from '../contract/cluster-api-kinds.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { MachineParts } from '../mapping/machine-parts.ts';
import { renderable, renderedTarget } from './carried-content.ts';
import { drivenPool, driverOf } from './driven-pool.ts';
import { isSameVersion } from './kubernetes-version.ts';
import { nodeProgress } from './node-progress.ts';
import { isSameMachine, type OwnerParts, ownedNow } from './owned-now.ts';
import {
  existingConfig,
  type PoolWrite,
  poolsOf,
  poolWrites,
  type WantedContent,
  wantedContent,
} from './wanted-content.ts';
import type { WorkloadState } from './workload-state.ts';

/** What is known of a machine that Cluster API has handed over for its update in place. */
export interface UpdateObservation {
  readonly reference: MachineReference;
  /** What the Machine's own objects say; undefined: it is gone. */
  readonly desired: MachineParts | undefined;
  readonly settings: MachineSettings;
  /** Undefined: it is gone. */
  readonly machine: Machine | undefined;
  /** Of the Machine, its owner or its Cluster. */
  readonly isPaused: boolean;
  /** Whether the extension holds MachineHealthChecks off the Machine. */
  readonly isHeldOff: boolean;
  /** Who decides on the Machine's updates; undefined: nobody that Shale knows. */
  readonly owner: MachineOwner | undefined;
  /** Undefined: the owner is gone. */
  readonly parts: OwnerParts | undefined;
  readonly workload: WorkloadState;
}

/** What is written for a machine. `hand-over` and `take-back`: the annotation by which the operator grants updates. */
export type UpdateWrite =
  | PoolWrite
  | { readonly kind: 'hold-off-remediation' | 'allow-remediation' }
  | {
      readonly kind: 'hand-over';
      readonly node: MachineConfigNode;
      readonly update: Omit<ClusterApiUpdate, 'at'>;
    }
  | { readonly kind: 'take-back'; readonly node: MachineConfigNode };

export interface UpdateDecision {
  /** In this order, before the answer. */
  readonly writes: readonly UpdateWrite[];
  readonly answer: UpdateMachineAnswer;
}

/** Seconds until Cluster API asks again: while the operator renders the pool, and while the node is updated. */
const SOON_SECONDS = 3;
const RETRY_SECONDS = 10;

/** Characters of a message: it becomes part of a condition of the Machine. */
const LONGEST_ANSWER = 1024;

/** A machine whose node is known, and the pool that its owner drives. */
interface Placed {
  readonly machine: Machine;
  readonly owner: MachineOwner;
  readonly parts: OwnerParts;
  readonly desired: MachineParts;
  readonly pool: MachineConfigPool;
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode;
}

type Placement = { readonly kind: 'placed'; readonly placed: Placed } | Waits | Fails;
interface Waits {
  readonly kind: 'waits';
  readonly message: string;
}
interface Fails {
  readonly kind: 'fails';
  readonly why: string;
}

/** Decides the next step of a machine's update: what is written, and what Cluster API is told. */
export function decideUpdate(observed: UpdateObservation): UpdateDecision {
  const placement = place(observed);
  switch (placement.kind) {
    case 'waits':
      return waiting([], placement.message);
    case 'fails':
      return failing(observed, placement.why);
    case 'placed':
      return decideContent(observed, placement.placed);
  }
}

/** Finds the machine's node by what the management cluster says, never by what a node says of itself. */
function place(observed: UpdateObservation): Placement {
  const { machine, desired, reference, owner, parts, workload } = observed;
  const named = `Machine ${formatMachine(reference)}`;
  if (machine === undefined || desired === undefined) return fails(`${named} is gone`);
  if (machine.metadata.deletionTimestamp !== undefined) return fails(`${named} is being deleted`);
  // Whoever calls the hook: without this its owner has not decided on an update.
  if (!isBeingUpdated(machine)) return fails(`Cluster API does not update ${named} in place`);
  if (observed.isPaused) return fails(`${named}, its owner or its Cluster is paused`);
  if (owner === undefined)
    return fails(`${named} belongs to no MachineDeployment and no KubeadmControlPlane`);
  if (parts === undefined) return fails(`${formatMachineOwner(owner)} is gone`);
  const driven = drivenPool(owner, poolsOf(workload));
  if (driven.kind === 'none') return fails(driven.why);
  const { pool } = driven;
  const name = machine.status?.nodeRef?.name;
  if (name === undefined) return waits(`${named} has no node yet`);
  const node = workload.nodes.find(({ metadata }) => metadata.name === name);
  if (node === undefined) return waits(`node ${name} is not there`);
  const { providerID } = machine.spec;
  if (providerID === undefined || node.spec?.providerID !== providerID)
    return fails(`node ${name} is another machine than ${named}: their spec.providerID differ`);
  const machineConfigNode = workload.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  if (machineConfigNode === undefined) return waits(`node ${name} has no MachineConfigNode yet`);
  const is = machineConfigNode.spec.pool.name;
  if (is !== pool.metadata.name) return fails(otherPool(name, is, pool, workload));
  return { kind: 'placed', placed: { machine, owner, parts, desired, pool, node, machineConfigNode } };
}

function otherPool(node: string, is: string, own: MachineConfigPool, workload: WorkloadState): string {
  const other = poolsOf(workload).find(({ metadata }) => metadata.name === is);
  const driver = other === undefined ? 'is gone' : driverOf(other);
  return `node ${node} is in MachineConfigPool ${is}, which ${driver}; its owner drives ${own.metadata.name}`;
}

function decideContent(observed: UpdateObservation, placed: Placed): UpdateDecision {
  const { workload, settings } = observed;
  const { pool, parts, owner, desired } = placed;
  const owned = ownedNow(existingConfig(workload, pool), parts, desired, settings);
  if (owned.kind === 'unknown') return failing(observed, owned.why);
  const wanted = wantedContent({ pool, owner, workload }, parts.current, owned.parts);
  if (wanted.kind === 'impossible') return failing(observed, wanted.why);
  const writes = poolWrites(workload, pool, wanted);
  const after = renderable(workload, pool, wanted, writes);
  if (after.kind === 'impossible') return failing(observed, after.why);
  if (writes.length > 0)
    return waiting(writes, `the pool ${pool.metadata.name} gets what has changed`, SOON_SECONDS);
  const target = renderedTarget(workload, pool, after.rendering);
  switch (target.kind) {
    case 'awaited':
      return waiting([], target.why, SOON_SECONDS);
    case 'stuck':
      return failing(observed, target.why);
    case 'rendered':
      return decideNode(observed, placed, wanted, target.config);
  }
}

function decideNode(
  observed: UpdateObservation,
  placed: Placed,
  wanted: WantedContent,
  target: string,
): UpdateDecision {
  const { pool, machineConfigNode, node, parts } = placed;
  const progress = nodeProgress(machineConfigNode, pool, target);
  switch (progress.kind) {
    case 'failed':
      return progress.isOver === true
        ? failed(progress.why, released(observed))
        : failing(observed, progress.why);
    case 'underWay':
      return waiting(handOver(observed, placed, target), progress.message);
    case 'updated': {
      const kubelet = awaitedKubelet(node, wanted, parts.current);
      return kubelet === undefined ? finished(observed, placed) : waiting([], kubelet);
    }
  }
}

/** An image may have another kubelet than its stream's name says: the machine then isn't what Cluster API wants. */
function awaitedKubelet(node: Node, wanted: WantedContent, { version }: MachineParts): string | undefined {
  const byImage = wanted.config?.spec.osImageURL !== undefined;
  if (version === undefined || (wanted.stream === undefined && !byImage)) return undefined;
  const reported = String(node.status?.nodeInfo?.['kubeletVersion'] ?? 'none');
  return isSameVersion(reported, version)
    ? undefined
    : `node ${node.metadata.name} runs the update; its kubelet reports ${reported}, and ${version} is awaited`;
}

/**
 * Not before the node has the pool's target as its own: for an earlier one it would be disrupted, and for this one
 * again.
 */
function handOver(
  { reference, isHeldOff }: UpdateObservation,
  { owner, machineConfigNode }: Placed,
  target: string,
): readonly UpdateWrite[] {
  if (machineConfigNode.spec.configVersion.desired !== target) return [];
  const update = { owner, machine: reference };
  return [
    ...(isHeldOff ? [] : [{ kind: 'hold-off-remediation' as const }]),
    ...(isHandedOver(machineConfigNode, update)
      ? []
      : [{ kind: 'hand-over' as const, node: machineConfigNode, update }]),
  ];
}

/** @returns what the annotation of a node says; undefined for none, and for one that can't be read. */
export function handedOver(node: MachineConfigNode): ClusterApiUpdate | undefined {
  const handover = handoverOf(node);
  return handover?.kind === 'by' ? handover.update : undefined;
}

function isHandedOver(node: MachineConfigNode, { owner, machine }: Omit<ClusterApiUpdate, 'at'>): boolean {
  const known = handedOver(node);
  return (
    known !== undefined && isSameOwner(known.owner, owner) && isSameMachineReference(known.machine, machine)
  );
}

/** @returns nodes that were handed over with the machine; it is one, unless its Machine got another node. */
function nodesOf({ workload, reference }: UpdateObservation): readonly MachineConfigNode[] {
  return workload.machineConfigNodes.filter((node) => {
    const update = handedOver(node);
    return update !== undefined && isSameMachineReference(update.machine, reference);
  });
}

/** @returns what makes a machine Cluster API's and everybody else's again. */
function released(observed: UpdateObservation): readonly UpdateWrite[] {
  const { isHeldOff, machine } = observed;
  return [
    ...nodesOf(observed).map((node) => ({ kind: 'take-back' as const, node })),
    ...(isHeldOff && machine !== undefined ? [{ kind: 'allow-remediation' as const }] : []),
  ];
}

/** A node with a grant is being worked on, whatever has changed meanwhile. */
function releasedUnlessGranted(observed: UpdateObservation): readonly UpdateWrite[] {
  return nodesOf(observed).some(({ spec }) => spec.grant !== undefined) ? [] : released(observed);
}

function finished(observed: UpdateObservation, { parts, desired }: Placed): UpdateDecision {
  const isSuperseded = !isSameMachine(parts.current, desired);
  const message = isSuperseded ? 'updated, to a newer template than was asked for' : 'updated';
  return { writes: released(observed), answer: { kind: 'done', message } };
}

function failing(observed: UpdateObservation, why: string): UpdateDecision {
  return failed(why, releasedUnlessGranted(observed));
}

function failed(why: string, writes: readonly UpdateWrite[]): UpdateDecision {
  return { writes, answer: { kind: 'failure', message: asMessage(why) } };
}

function waiting(
  writes: readonly UpdateWrite[],
  message: string,
  retryAfterSeconds = RETRY_SECONDS,
): UpdateDecision {
  return { writes, answer: { kind: 'inProgress', retryAfterSeconds, message: asMessage(message) } };
}

function asMessage(text: string): string {
  return cutText(inOneLine(text), LONGEST_ANSWER);
}

function waits(message: string): Waits {
  return { kind: 'waits', message };
}

function fails(why: string): Fails {
  return { kind: 'fails', why };
}
