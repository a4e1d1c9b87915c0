import { isDisruptive } from '../../api/disruption-action.ts';
import type { Grant } from '../../api/machine-config-node.ts';
import { isTaken } from '../node-leases.ts';
import type { NodeClaims } from './claims.ts';
import type { NodeState } from './node-state.ts';
import { provesTarget } from './update-state.ts';
import type { Work } from './work.ts';

/** What the operator does for one node next. */
export type NodeStep =
  | { readonly kind: 'none' }
  /** Take the lease; then cordon (Disrupt), or grant (Live). */
  | { readonly kind: 'take'; readonly level: Grant['level'] }
  /** Drain the cordoned node if its plan requires it, then grant. */
  | { readonly kind: 'drain' }
  /** Keep the lease while the daemon works. */
  | { readonly kind: 'keep-lease'; readonly why: string }
  /** The node runs its target and serves: uncordon, release the lease, withdraw the grant. */
  | { readonly kind: 'finish' }
  /** Undo what was started and not granted yet. */
  | { readonly kind: 'back-out'; readonly why: string }
  /**
   * The node failed for good, or somebody else holds it: the grant is withdrawn and the lease released, so that
   * others can work on it. The cordon stays: no pod is to be scheduled on a doubtful node, and a tool that maintains or
   * deletes nodes doesn't cordon a cordoned one again.
   */
  | { readonly kind: 'let-go'; readonly why: string }
  /** Somebody else holds the lease: withdraw the grant and touch nothing more. */
  | { readonly kind: 'suspend'; readonly why: string };

export interface NodeStepContext {
  /** Why nothing disruptive may begin in this pool; undefined when it may. */
  readonly closed: string | undefined;
  /** ms that a failed node keeps its grant and lease. */
  readonly patience: number;
  /** ms that a node may be down after its update. */
  readonly unhealthyAfter: number;
  /** ms since the epoch. */
  readonly now: number;
}

/**
 * The next step for a node that the rollout has under way. Nodes to begin with are chosen elsewhere (choose-nodes.ts).
 */
export function nodeStep(node: NodeState, context: NodeStepContext): NodeStep {
  if (!isAtWork(node)) return { kind: 'none' };
  if (isTaken(node.claims.lease)) {
    const why = `lost its lease to ${node.claims.lease.by === 'other' ? node.claims.lease.holder : 'whoever switched it off'}`;
    return node.work.grant === undefined ? { kind: 'none' } : { kind: 'suspend', why };
  }
  if (isOnlyLeft(node)) return { kind: 'back-out', why: 'its lease was left behind' };
  const step = stepUnderLease(node, context);
  const relied =
    step.kind === 'finish' || step.kind === 'back-out'
      ? reliesOnCordon(node.work, node.claims.holders)
      : undefined;
  return relied === undefined ? step : letGo(node, relied);
}

function stepUnderLease(node: NodeState, context: NodeStepContext): NodeStep {
  // The person who switched it off needs its lease, and nothing runs there.
  if (node.claims.away?.kind === 'switched-off') return { kind: 'back-out', why: node.claims.away.why };
  return stepOfProgress(node, context);
}

function stepOfProgress(node: NodeState, context: NodeStepContext): NodeStep {
  switch (node.update.progress.kind) {
    case 'updated':
      return stepWhenUpdated(node, context);
    case 'degraded':
      return stepWhenDegraded(node, node.update.progress.since, context);
    case 'staged':
      return stepWhenStaged(node, isDisruptive(node.update.progress.actions), context);
    case 'preparing':
      return stepWhenPreparing(node, node.update.progress.why);
  }
}

/**
 * @returns who holds the node and would have it uncordoned under their work. Its mark stays with the cordon, so
 *   that Shale lifts it once the node is given back.
 */
export function reliesOnCordon(
  { cordon }: Pick<Work, 'cordon'>,
  [first]: NodeClaims['holders'],
): string | undefined {
  return cordon?.uncordon === true ? first?.message : undefined;
}

/**
 * @param now ms since the epoch.
 * @returns whether the update of a node is over and only has to be finished. The pool's settings decide on other steps
 *   only.
 */
export function isFinished(node: NodeState, now: number): boolean {
  const context = { closed: undefined, patience: Infinity, unhealthyAfter: Infinity, now };
  return nodeStep(node, context).kind === 'finish';
}

/** @returns whether the rollout has anything on the node: the lease, a cordon, a grant. */
export function isAtWork(node: NodeState): boolean {
  const { work } = node;
  const { lease } = node.claims;
  return lease.by === 'us' || work.cordon !== undefined || work.grant !== undefined || isOnlyLeft(node);
}

function isOnlyLeft({ claims: { lease }, work }: NodeState): boolean {
  return (
    lease.by === 'nobody' && lease.left === true && work.cordon === undefined && work.grant === undefined
  );
}

function stepWhenUpdated(node: NodeState, { unhealthyAfter, now }: NodeStepContext): NodeStep {
  if (isUnhealthy(node, unhealthyAfter, now))
    return letGo(node, 'the node has not been Ready for too long after its update');
  if (!node.availability.ready) return { kind: 'keep-lease', why: 'waiting for the node to become Ready' };
  // The Ready condition outlives a reboot by the node monitor's grace period; the boot id does not.
  if (!node.availability.bootAgrees)
    return { kind: 'keep-lease', why: 'waiting for the kubelet to report the new boot' };
  return { kind: 'finish' };
}

function stepWhenDegraded(node: NodeState, since: number, { patience, now }: NodeStepContext): NodeStep {
  if (since + patience > now) return { kind: 'keep-lease', why: 'the update failed' };
  return letGo(node, 'the update has been failing for too long');
}

function letGo(node: NodeState, why: string): NodeStep {
  const holdsAnything = node.claims.lease.by === 'us' || node.work.grant !== undefined;
  return holdsAnything ? { kind: 'let-go', why } : { kind: 'none' };
}

function stepWhenStaged(node: NodeState, disruptive: boolean, { closed }: NodeStepContext): NodeStep {
  const { grant, cordon } = node.work;
  if (grant === 'Disrupt' || (grant === 'Live' && !disruptive)) {
    return { kind: 'keep-lease', why: 'the daemon applies the update' };
  }
  // What is staged is out of date: going on would disrupt the node twice.
  const outdated = node.update.assigned ? undefined : 'the pool has another target';
  const against = closed ?? node.claims.holders[0]?.message ?? outdated;
  if (against !== undefined) return { kind: 'back-out', why: against };
  return cordon !== undefined && node.claims.lease.by === 'us' ? { kind: 'drain' } : { kind: 'none' };
}

function stepWhenPreparing(
  { work, claims: { holders } }: NodeState,
  why = 'the daemon is preparing the update',
): NodeStep {
  // Cordoned and perhaps rebooting for an earlier target: out of service until the daemon reports.
  if (work.grant !== undefined) return { kind: 'keep-lease', why };
  // It stages nothing now: who waits for the lease would wait for ever.
  const [holder] = holders;
  if (holder !== undefined) return { kind: 'back-out', why: holder.message };
  if (work.cordon !== undefined) return { kind: 'keep-lease', why };
  return { kind: 'back-out', why: 'nothing is staged, so the lease is not needed' };
}

/**
 * Since when a node is down because of its update, judging by the times: it was Ready when the update started, and
 * either has not become Ready again or went down within the pool's patience after the update ended. A node that went
 * down later, or that was down before, proves nothing about the target.
 *
 * @param patience ms.
 * @returns ms since the epoch; undefined for a node that is Ready or is down for another reason.
 */
export function downSince(node: NodeState, patience: number): number | undefined {
  const { assigned, progress } = node.update;
  const { away } = node.claims;
  const { ready, notReadySince } = node.availability;
  if (!assigned || away !== undefined || ready || notReadySince === undefined) return undefined;
  const began = updateBegan(node);
  if (began === undefined || notReadySince < wholeSeconds(began)) return undefined;
  if (progress.kind !== 'updated' || progress.since === undefined) return notReadySince;
  // The rollout uncordons and withdraws its grant as soon as the node is Ready.
  const neverBack = node.work.cordon !== undefined || node.work.grant !== undefined;
  if (neverBack) return progress.since;
  return notReadySince - progress.since <= patience ? notReadySince : undefined;
}

/**
 * @returns whether the node has been down for longer than the pool's patience because of its update. @param now ms
 * since the epoch.
 */
export function isUnhealthy(node: NodeState, patience: number, now: number): boolean {
  const since = downSince(node, patience);
  return since !== undefined && since + patience <= now;
}

/** Times of conditions have no finer ones (metav1.Time). */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function updateBegan({ update: { progress }, work, claims: { lease } }: NodeState): number | undefined {
  if (progress.kind === 'updated') return progress.startedAt;
  // A node without a grant has not started the update, so it can't be broken by it.
  return work.grant !== undefined && lease.by === 'us' ? lease.since : undefined;
}

/**
 * @param soak ms for which an update must have held.
 * @param now ms since the epoch.
 * @returns whether nothing is to be done about a node until something about it changes.
 */
export function isSettled(
  { availability, claims, work, update }: NodeState,
  soak: number,
  now: number,
): boolean {
  const { lease } = claims;
  const isUntouched =
    lease.by === 'nobody' && lease.left !== true && work.cordon === undefined && work.grant === undefined;
  const { ready, schedulable, bootAgrees, startup } = availability;
  const serves = ready && schedulable && bootAgrees && startup === undefined;
  const isFree = claims.holders.length === 0 && claims.away === undefined && !claims.inMaintenance;
  if (update.daemonFails !== undefined) return false;
  // A settled node counts as proof of the target.
  return provesTarget(update, soak, now) && isUntouched && serves && isFree;
}
