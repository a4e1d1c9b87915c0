import { isDisruptive } from '../../api/disruption-action.ts';
import type { Grant } from '../../api/machine-config-node.ts';
import { byCodeUnits } from '../../api/order.ts';
import { CORDONED, CORDONED_BY_OTHERS, diskHolder } from '../gates/cordoned.ts';
import type { NodeHold } from '../gates/hold.ts';
import type { FailureDomains, FullDomain } from './failure-domains.ts';
import { isNew } from './node-availability.ts';
import type { NodeState } from './node-state.ts';
import { downSince } from './node-step.ts';
import { hasHeld, isUngranted } from './progress.ts';
import { provesTarget, type UpdateState } from './update-state.ts';

/**
 * Who decides how many nodes go at once. `own`: this rollout, by a canary and by those that have proven the target;
 * `cluster-api`: Cluster API has chosen each node that may start, so that all of them do.
 */
export type Pace = 'own' | 'cluster-api';

export interface ChoiceLimits {
  /** Of the pool; where Cluster API sets the pace it doesn't limit. */
  readonly maxUnavailable: number;
  /** Absent: own. */
  readonly pace?: Pace;
  /** Absent: maxUnavailable alone limits. */
  readonly domains?: FailureDomains | undefined;
  /** Names of nodes that are unavailable and have no state yet; absent: none. */
  readonly down?: readonly string[];
  /** The host this process runs on: it comes last, so that a rollout changes its leader at most once. */
  readonly operatorNode?: string | undefined;
  /** Further nodes that run the target and have proven it; absent: none. */
  readonly settled?: number;
  /** ms for which a live update must have held before it counts as proof. */
  readonly soak: number;
  /** ms that a node may be down after its update. */
  readonly unhealthyAfter: number;
  /** ms since the epoch. */
  readonly now: number;
  /** Which nodes may start at all; absent: all of them. */
  readonly only?: (node: NodeState) => boolean;
}

export interface Choice {
  /** Nodes to start with now, in this order. */
  readonly begin: readonly { readonly name: string; readonly level: Grant['level'] }[];
  /** Nodes that could start but for a reason of their own. */
  readonly skipped: readonly NodeHold[];
  /**
   * Nodes could start, but nodes that are unavailable for other reasons use up maxUnavailable: the pool's, or that of
   * the domains of `domainWaits`.
   */
  readonly slotsTaken: boolean;
  /** The failure domains of nodes that the pool's maxUnavailable would let start, by node. */
  readonly domainWaits: ReadonlyMap<string, FullDomain>;
}

/**
 * Decides which nodes start applying their staged target now.
 *
 * Disruptive plans (Drain or Reboot) share maxUnavailable with every node that is unavailable for whatever reason. A
 * node that is unavailable already may start, because that makes no further node unavailable. Control-plane nodes go
 * one at a time. New nodes, on which no pod can be yet, take no part in that: one of them is the canary of a target
 * that no node has proven, and then they go together. Plans without disruption take no such slot: first one canary,
 * then twice as many as have proven it. Order as MCO's: by zone, nodes without one last, then by age.
 *
 * Nodes that Cluster API has handed over share neither maxUnavailable nor a canary: Cluster API counts them as
 * unavailable against a maxUnavailable of its own. Failure domains, of which it knows nothing, and the one node of the
 * control plane at a time limit them as others.
 */
export function chooseNodes(all: readonly NodeState[], limits: ChoiceLimits): Choice {
  // A node that was switched off on request is not counted.
  const nodes = all.filter(({ claims: { away } }) => away?.kind !== 'switched-off');
  const { only = () => true } = limits;
  const waiting = nodes.filter(awaitsBeginning).filter(only).toSorted(inOrder(limits.operatorNode));
  const skipped = waiting.flatMap((node) => {
    const [hold] = node.claims.holders;
    return hold === undefined ? [] : [{ name: node.name, ...hold }];
  });
  const candidates = waiting.filter(({ claims: { holders } }) => holders.length === 0);
  const inService = nodes.filter((node) => !isNew(node));
  const disrupting = candidates.filter(plansDisruption);
  // Disrupting its own node makes the operator start again elsewhere, so nodes that are still being prepared go first.
  const hostWaits = inService.some(isBeingPrepared);
  const disruptive = chooseDisruptive(
    inService,
    disrupting
      .filter((node) => !isNew(node))
      .filter((node) => !hostWaits || node.name !== limits.operatorNode || isBeingDisrupted(node)),
    limits,
  );
  const live = chooseLive(
    nodes,
    candidates.filter((node) => !plansDisruption(node)),
    limits,
  );
  const begin = [...chooseNew(nodes, disrupting.filter(isNew), limits), ...disruptive.begin, ...live];
  return { begin, skipped, slotsTaken: disruptive.slotsTaken, domainWaits: disruptive.domainWaits };
}

/** @returns whether the node is out of service: not Ready, cordoned by whomever, failed, or at work. */
export function isUnavailable(node: NodeState): boolean {
  const { ready, schedulable } = node.availability;
  return !ready || !schedulable || node.update.progress.kind === 'degraded' || isBeingDisrupted(node);
}

/**
 * The holder of a node's lease, and an active maintenance, may take the node out of service at any time.
 *
 * @returns whether the node takes one of maxUnavailable.
 */
export function takesSlot(node: NodeState): boolean {
  if (isNew(node)) return false;
  return isUnavailable(node) || node.claims.lease.by === 'other' || node.claims.inMaintenance;
}

/** @returns why a node that the rollout doesn't disrupt takes one of maxUnavailable; undefined when it takes none. */
export function unavailableBecause(node: NodeState): string | undefined {
  const { holders, away } = node.claims;
  const { ready, schedulable } = node.availability;
  if (away?.kind === 'switched-off' || isBeingDisrupted(node) || !takesSlot(node)) return undefined;
  return [
    ...holders.map(({ message }) => message),
    ...failureOf(node.update),
    ...(ready ? [] : ['not Ready']),
    ...(schedulable || holders.some(({ reason }) => reason === CORDONED) ? [] : [CORDONED_BY_OTHERS]),
  ].join(', ');
}

/** What was changed by hand degrades a node, too. */
function failureOf({ failedAtTarget, progress }: UpdateState): string[] {
  if (progress.kind !== 'degraded') return [];
  return [failedAtTarget || progress.ofAnother === true ? 'its update failed' : progress.why];
}

/** @returns whether the rollout has taken the node out of service, or may do so at any time. */
export function isBeingDisrupted(node: NodeState): boolean {
  return node.work.cordon !== undefined || node.work.grant === 'Disrupt';
}

/** The nodes of a pool that are out of service, by name. */
interface Occupied {
  readonly unavailable: Set<string>;
  /** Those that the rollout has taken out of service. */
  readonly disrupted: Set<string>;
}

/** @param nodes without those that were switched off on request. */
export function occupiedBy(nodes: readonly NodeState[]): Occupied {
  const namesOf = (some: readonly NodeState[]) => new Set(some.map(({ name }) => name));
  return {
    unavailable: namesOf(nodes.filter(takesSlot)),
    disrupted: namesOf(nodes.filter(isBeingDisrupted)),
  };
}

/**
 * A node that is unavailable already needs no further slot but one of those that the rollout itself takes.
 *
 * @returns what has no room for a node that is to be disrupted, too; undefined where it may start.
 */
export function fullFor(
  node: string,
  { unavailable, disrupted }: Occupied,
  {
    maxUnavailable,
    pace = 'own',
    domains,
    down = [],
  }: Pick<ChoiceLimits, 'maxUnavailable' | 'pace' | 'domains' | 'down'>,
): 'pool' | FullDomain | undefined {
  const most = maxUnavailable - down.length;
  const isUp = !unavailable.has(node);
  const isFull = disrupted.size >= most || (isUp && unavailable.size >= most);
  if (pace === 'own' && isFull) return 'pool';
  return domains?.full(node, isUp ? new Set([...unavailable, ...down]) : disrupted);
}

/** @returns how many nodes have taken the target and kept it for the time that counts as proof. */
export function provenNodes(
  nodes: readonly NodeState[],
  { settled = 0, soak, now }: Pick<ChoiceLimits, 'settled' | 'soak' | 'now'>,
): number {
  const proven = nodes.filter((node) => node.availability.ready && provesTarget(node.update, soak, now));
  return settled + proven.length;
}

function awaitsBeginning(node: NodeState): boolean {
  if (!node.update.assigned || node.update.progress.kind !== 'staged') return false;
  // Cordoned and still under our lease: its update has started.
  if (node.work.cordon !== undefined && node.claims.lease.by === 'us') return false;
  return node.work.grant === undefined || (node.work.grant === 'Live' && plansDisruption(node));
}

/** The rollout does not wait for a node that is down or can't be prepared, or that others keep from being prepared. */
function isBeingPrepared({
  update: { assigned, progress },
  availability: { ready },
  claims: { away, holders },
}: NodeState): boolean {
  if (diskHolder(holders) !== undefined) return false;
  const isOnIt =
    (!assigned && holders.length === 0) || (progress.kind === 'preparing' && progress.stalled === undefined);
  return isOnIt && ready && away === undefined;
}

/** @returns whether the target that the node has staged drains or reboots it. */
export function plansDisruption(node: NodeState): boolean {
  return node.update.progress.kind === 'staged' && isDisruptive(node.update.progress.actions);
}

function chooseDisruptive(
  nodes: readonly NodeState[],
  candidates: readonly NodeState[],
  limits: ChoiceLimits,
): Pick<Choice, 'begin' | 'slotsTaken' | 'domainWaits'> {
  const occupied = occupiedBy(nodes);
  const { unavailable, disrupted } = occupied;
  const isIdle = disrupted.size === 0;
  let controlPlaneBusy = nodes.some((node) => node.controlPlane && isBeingDisrupted(node));
  const begin: { name: string; level: 'Disrupt' }[] = [];
  const domainWaits = new Map<string, FullDomain>();
  for (const node of candidates) {
    if (!disrupted.has(node.name)) {
      if (node.controlPlane && controlPlaneBusy) continue;
      const full = fullFor(node.name, occupied, limits);
      if (typeof full === 'object') domainWaits.set(node.name, full);
      if (full !== undefined) continue;
    }
    disrupted.add(node.name);
    unavailable.add(node.name);
    controlPlaneBusy ||= node.controlPlane;
    begin.push({ name: node.name, level: 'Disrupt' });
  }
  const slotsTaken = isIdle && candidates.length > 0 && begin.length === 0;
  return { begin, slotsTaken, domainWaits };
}

/** They reboot without disturbing anybody, but a target that breaks nodes should not break all new ones at once. */
function chooseNew(
  nodes: readonly NodeState[],
  candidates: readonly NodeState[],
  limits: ChoiceLimits,
): Choice['begin'] {
  // One that lost its lease in the middle goes first, or it would wait for itself.
  const [begun, others] = [
    candidates.filter(isBeingDisrupted),
    candidates.filter((node) => !isBeingDisrupted(node)),
  ];
  const isBusy = nodes.some((node) => isNew(node) && isBeingDisrupted(node) && !begun.includes(node));
  const room = provenNodes(nodes, limits) > 0 ? candidates.length : isBusy ? 0 : 1;
  return [...begun, ...others].slice(0, room).map(({ name }) => ({ name, level: 'Disrupt' }));
}

function chooseLive(
  nodes: readonly NodeState[],
  candidates: readonly NodeState[],
  limits: ChoiceLimits,
): Choice['begin'] {
  const room = roomForLive(nodes, candidates, limits);
  // A canary that is not Ready would prove nothing.
  const readyFirst = [
    ...candidates.filter(({ availability: { ready } }) => ready),
    ...candidates.filter(({ availability: { ready } }) => !ready),
  ];
  return readyFirst.slice(0, room).map(({ name }) => ({ name, level: 'Live' }));
}

function roomForLive(
  nodes: readonly NodeState[],
  candidates: readonly NodeState[],
  limits: ChoiceLimits,
): number {
  switch (limits.pace ?? 'own') {
    case 'cluster-api':
      return candidates.length;
    case 'own': {
      const inFlight = nodes.filter((node) => isUnproven(node, limits)).length;
      return Math.max(0, provenNodes(nodes, limits) + 1 - inFlight);
    }
  }
}

/** Being updated, or updated and not yet for the time that counts as proof. */
function isUnproven(node: NodeState, { soak, unhealthyAfter, now }: ChoiceLimits): boolean {
  const { work } = node;
  const { assigned, progress } = node.update;
  if (progress.kind !== 'updated') return work.grant === 'Live';
  if (!assigned || isUngranted(progress)) return false;
  if (downSince(node, unhealthyAfter) !== undefined) return true;
  // Where no time is proof, nodes go one by one.
  return Number.isFinite(soak) && !hasHeld(progress, soak, now);
}

/** The order in which nodes start. */
export function inOrder(operatorNode: string | undefined): (a: NodeState, b: NodeState) => number {
  const last = (node: NodeState) => (node.name === operatorNode ? 1 : 0);
  const hasNoZone = ({ zone }: NodeState) => (zone === '' ? 1 : 0);
  return (a, b) =>
    last(a) - last(b) ||
    hasNoZone(a) - hasNoZone(b) ||
    byCodeUnits(a.zone, b.zone) ||
    byCodeUnits(a.createdAt, b.createdAt) ||
    byCodeUnits(a.name, b.name);
}
