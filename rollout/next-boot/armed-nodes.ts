import { maxUnavailable } from '../../api/max-unavailable.ts';
import { plural } from '../../api/plural.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { diskHolder } from '../gates/cordoned.ts';
import type { Hold } from '../gates/hold.ts';
import { inOrder, takesSlot } from '../pools/choose-nodes.ts';
import type { Started } from '../pools/delay-starts.ts';
import type { FailureDomains } from '../pools/failure-domains.ts';
import { isAway, isUpdated, type NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import { REBOOTS_BY_OTHERS, rebootsByOthers } from './reboots-by-others.ts';

/** Nodes whose next boot is the target, or may be, where Shale leaves reboots to others. */
export interface ArmedNodes {
  /** Nodes that may make the target their next boot. */
  readonly permit: ReadonlySet<string>;
  /** What a node waits for, by node: a clause that completes "NODE: …". */
  readonly remarks: ReadonlyMap<string, string>;
}

interface ArmInputs {
  readonly observation: Pick<PoolObservation, 'settings' | 'pool' | 'target'>;
  /** Every node that was looked at. */
  readonly states: readonly NodeState[];
  /** How many nodes pods run on, those included that were not looked at. */
  readonly inService: number;
  /** Absent: the bound of the pool alone limits. */
  readonly domains?: FailureDomains | undefined;
}

interface CandidateOptions {
  readonly isOpenFor: (node: NodeState) => boolean;
  readonly operatorNode: string | undefined;
}

/**
 * @returns the nodes whose next boot the target may become, for the gates that all starts pass, and what decides about
 *   these nodes with what the gates let through.
 */
export function nextBoots(inputs: ArmInputs, options: CandidateOptions) {
  const candidates = armCandidates(inputs, options);
  return {
    starts: candidates.map(({ name }) => ({ name, level: 'Disrupt' as const })),
    choose: (started: Started) => chooseArmed(inputs, candidates, started),
  };
}

/** @returns nodes whose next boot the target may become, in the order in which they come to it. */
function armCandidates(
  { observation: { settings, target }, states }: Pick<ArmInputs, 'observation' | 'states'>,
  { isOpenFor, operatorNode }: CandidateOptions,
): readonly NodeState[] {
  if (!hasImage(target)) return [];
  return waitingNodes(states, settings)
    .filter((node) => isOpenFor(node) && !isAway(node) && (node.availability.ready || isPermitted(node)))
    .filter((node) => diskHolder(node.claims.holders) === undefined)
    .toSorted(unavailableFirst(inOrder(operatorNode)));
}

/**
 * Decides whose next boot the target may be. A loss of power boots all of these nodes at once, so they share a bound
 * with the nodes that are unavailable: together they are no more than maxUnavailable, or the pool's own number. A node
 * that is unavailable already comes first: somebody who cordons a node is about to reboot it, and it makes no further
 * node unavailable. A node that has to give way to it does so before the other is permitted.
 *
 * What was permitted and isn't among the candidates is withdrawn: the pool was paused or stopped, or has another
 * target. On a node that somebody else holds it stays: nothing is written to it, also not to disarm it.
 *
 * @param candidates of {@link armCandidates}. @param started which of them wait for no alert, pool or wave, and what
 *   the others wait for.
 */
function chooseArmed(
  { observation, states, inService, domains }: ArmInputs,
  candidates: readonly NodeState[],
  started: Started,
): ArmedNodes {
  const { begin, heldFor } = started;
  const { pool, settings, target } = observation;
  const bound = maxUnavailable(settings.maxArmed ?? pool.spec.maxUnavailable, inService);
  const may = new Set(begin.map(({ name }) => name));
  const kept = states.filter(staysAsItIs);
  const desired = withinBound(
    states,
    { kept, candidates: candidates.filter(({ name }) => may.has(name)) },
    bound,
    domains,
  );
  const permit = afterLeaving(states, desired, bound);
  const full = `the update is staged; no more than ${plural(bound, 'node')} may be armed or unavailable at once`;
  const remarkOn = (node: NodeState) => {
    if (!hasImage(target)) return STANDARD;
    if (permit.has(node.name)) return permittedRemark(node);
    const hold = diskHolder(node.claims.holders);
    if (hold !== undefined) return `the update is staged; ${hold.message}`;
    return heldFor(node.name)?.message ?? full;
  };
  const remarks = new Map([
    ...kept.map((node) => [node.name, keptRemark(node)] as const),
    ...waitingNodes(states, settings).map((node) => [node.name, remarkOn(node)] as const),
  ]);
  return { permit, remarks };
}

/**
 * @param waits what nodes wait for whose reboots are left to others, by node.
 * @param steps what is next on nodes that are under way.
 * @returns what the pool waits for, where every node that is not updated waits for a reboot by somebody else.
 */
export function leftToOthers(
  states: readonly NodeState[],
  waits: ReadonlyMap<string, string>,
  steps: ReadonlyMap<string, unknown>,
): Hold | undefined {
  const outstanding = states.filter((node) => !isUpdated(node) && !isAway(node));
  const isLeft = ({ name }: NodeState) => waits.has(name) && !steps.has(name);
  if (outstanding.length === 0 || !outstanding.every(isLeft)) return undefined;
  const message = `nodes are rebooted by others, and not by Shale (${fieldOf('rebootPolicy')})`;
  return { reason: REBOOTS_BY_OTHERS, message };
}

/** What it boots next is verified as an update is, and proves nothing to others where the pool has another target. */
function staysAsItIs({ update: { nextBoot, progress }, claims: { holders } }: NodeState): boolean {
  return nextBoot?.permitted === true && progress.kind !== 'updated' && diskHolder(holders) !== undefined;
}

function keptRemark({ update: { assigned }, claims: { holders } }: NodeState): string {
  return `${assigned ? 'the update' : 'an earlier target'} stays its next boot; ${diskHolder(holders)?.message}`;
}

function waitingNodes(states: readonly NodeState[], settings: PoolObservation['settings']): NodeState[] {
  return states.filter(
    (node) => node.update.assigned && rebootsByOthers.hold({ settings }, node) !== undefined,
  );
}

const STANDARD = `the update is staged, and needs a reboot: in standard mode it can't apply at a reboot by others; remove ${fieldOf('rebootPolicy')} to have Shale reboot nodes`;

function hasImage(target: PoolObservation['target']): boolean {
  return 'target' in target && target.target.image !== undefined;
}

function permittedRemark({ update: { nextBoot } }: NodeState): string {
  return nextBoot?.armed === true
    ? "staged; applies at the node's next reboot"
    : 'the update is staged, and is being made the next boot';
}

function isPermitted({ update: { nextBoot } }: NodeState): boolean {
  return nextBoot?.permitted === true;
}

type Order = (a: NodeState, b: NodeState) => number;

/** Then those that may already: no node is disarmed for the sake of the order. */
function unavailableFirst(order: Order): Order {
  const rank = (node: NodeState) => (!node.availability.schedulable ? 0 : isPermitted(node) ? 1 : 2);
  return (a, b) => rank(a) - rank(b) || order(a, b);
}

/**
 * Control-plane nodes are armed one at a time, whatever the bound.
 *
 * A node that may already stays so when others become unavailable: disarming it for each of these would serve nobody.
 */
function withinBound(
  states: readonly NodeState[],
  { kept, candidates }: Readonly<Record<'kept' | 'candidates', readonly NodeState[]>>,
  bound: number,
  domains: FailureDomains | undefined,
): readonly NodeState[] {
  const taken = new Set([...states.filter(takesSlot), ...kept].map(({ name }) => name));
  const desired: NodeState[] = [...kept];
  for (const node of candidates) {
    if (desired.length >= bound) break;
    if (node.controlPlane && desired.some(({ controlPlane }) => controlPlane)) continue;
    if (!isPermitted(node) && !taken.has(node.name) && taken.size >= bound) continue;
    if (!isPermitted(node) && !taken.has(node.name) && domains?.full(node.name, taken) !== undefined)
      continue;
    taken.add(node.name);
    desired.push(node);
  }
  return desired;
}

/** What is armed and has to go counts until its daemon reports that it is gone. */
function afterLeaving(
  states: readonly NodeState[],
  desired: readonly NodeState[],
  bound: number,
): ReadonlySet<string> {
  const wanted = new Set(desired.map(({ name }) => name));
  const leaving = states.filter(
    ({ name, update: { nextBoot } }) => nextBoot !== undefined && !wanted.has(name),
  ).length;
  const kept = desired.filter((node) => node.update.nextBoot !== undefined);
  const others = desired.filter((node) => node.update.nextBoot === undefined);
  const room = Math.max(0, bound - kept.length - leaving);
  return new Set([...kept, ...others.slice(0, room)].map(({ name }) => name));
}
