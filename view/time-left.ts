import { statesAtWork } from '../api/node-state.ts';
import { domainRounds } from '../predict/cost.ts';
import { ofLatestRollout } from '../predict/latest-rollout.ts';
import type { HoldView, NodeView, PoolView } from './schemas.ts';

/** How long a rollout will take until the last node has taken it. */
export type TimeLeft = NonNullable<PoolView['timeLeft']>;

/** A node of the pool, as far as the estimate needs it. Actions are as {@link formatAction} writes them. */
export interface TimedNode
  extends Pick<
    NodeView,
    'state' | 'since' | 'obstacle' | 'nextBoot' | 'blockedBy' | 'verification' | 'domain' | 'fullDomain'
  > {
  /** The actions of its target; undefined where it has no plan. */
  readonly planned: readonly string[] | undefined;
  readonly last: TimedUpdate | undefined;
}

/** The last update of a node; times in ms since the epoch. */
export interface TimedUpdate {
  readonly config: string;
  readonly start: number;
  readonly end: number;
  readonly result: 'Succeeded' | 'RolledBack' | 'Failed';
  readonly actions: readonly string[];
  /** Whether its target is the one that the node has now. */
  readonly ofTarget: boolean;
}

/** The latest updates count: the first nodes go one by one, and the pace may change. */
const MOST_UPDATES = 50;

/** While one of these holds a pool, no node starts, or not at a pace of ours, so there is nothing to estimate. */
const STOPPING: ReadonlySet<HoldView['kind']> = new Set([
  'paused',
  'window-closed',
  'stopped',
  'unreadable',
  'unmanaged',
  'waiting',
  'cluster-api',
]);

/**
 * Estimates from the pace of nodes that were updated: the time from the start of the first of them to the end of the
 * last, per node. So drains, and how many nodes go at a time, are in it. Nodes of one failure domain that are left over
 * go one after another, and take no less than each of the former did.
 *
 * @param members the nodes of the pool.
 * @param now ms since the epoch.
 * @returns undefined where nothing is left but reboots by others, somebody or something holds the pool, a node at work
 *   comes no further, or no node was updated yet.
 */
export function timeLeft(
  pool: Pick<PoolView, 'state' | 'paused' | 'holds' | 'failureDomains'>,
  members: readonly TimedNode[],
  now: number,
): TimeLeft | undefined {
  const { state, paused, holds = [], failureDomains } = pool;
  const isOver = state === 'Updated' || state === 'Degraded';
  if (isOver || paused || holds.some(({ kind }) => STOPPING.has(kind))) return undefined;
  const leftToOthers = holds.some(({ kind }) => kind === 'next-reboot');
  const isOthers = ({ planned = [], nextBoot }: TimedNode) =>
    nextBoot === true || (leftToOthers && planned.includes('Reboot'));
  const waiting = members.filter(
    (node) => isToCome(node) && (statesAtWork.has(node.state) || !isOthers(node)),
  );
  if (waiting.length === 0 || waiting.some(isStuck)) return undefined;
  const succeeded = members.flatMap(({ state: is, last }) =>
    last?.result === 'Succeeded' ? [{ is, ...last }] : [],
  );
  const done = ofLatestRollout(
    succeeded.filter(({ is, ofTarget }) => is === 'updated' && ofTarget),
    succeeded.filter(({ ofTarget }) => !ofTarget),
  );
  const isWaiting = new Set(waiting);
  const rounds =
    failureDomains === undefined
      ? 0
      : domainRounds(
          failureDomains.maxUnavailable,
          members.map((node) => ({ domain: node.domain ?? '', isToCome: isWaiting.has(node) })),
        );
  const toDo = { nodes: waiting.length, rounds };
  const latest = paceOf(done);
  const atWork = waiting.filter(({ state: is }) => statesAtWork.has(is));
  const starts = atWork.flatMap(({ since }) => (since === undefined ? [] : [Date.parse(since)]));
  if (latest !== undefined) {
    const since = startAfter(latest, atWork.length > starts.length ? latest.end : Math.min(now, ...starts));
    return { ms: left(latest, toDo, since, now), updates: latest.updates, of: 'this' };
  }
  const before = paceOf(lastRollout(waiting));
  if (before === undefined) return undefined;
  return {
    ms: left(before, toDo, Math.min(now, ...starts), now),
    updates: before.updates,
    of: 'last',
  };
}

/** Failed nodes, and those that rollouts skip, are waited for by nobody. */
function isToCome({ state, obstacle }: TimedNode): boolean {
  return obstacle === undefined && (statesAtWork.has(state) || state === 'staging' || state === 'staged');
}

/** Until a pod may be evicted, a health check passes, or others give a node back, is nothing that updates tell. */
function isStuck({ blockedBy, verification, fullDomain }: TimedNode): boolean {
  return blockedBy !== undefined || verification?.check !== undefined || fullDomain?.byOthers === true;
}

interface Pace {
  readonly updates: number;
  /** With the others that went beside it. */
  readonly msPerNode: number;
  /** Of one node alone. */
  readonly msAlone: number;
  /** When the latest update ended. */
  readonly end: number;
}

/** @param updates of one rollout, newest first. */
function paceOf(updates: readonly TimedUpdate[]): Pace | undefined {
  const latest = updates.slice(0, MOST_UPDATES);
  const newest = latest[0];
  if (newest === undefined) return undefined;
  const start = Math.min(...latest.map((update) => update.start));
  const count = latest.length;
  const msAlone = latest.reduce((sum, update) => sum + update.end - update.start, 0) / count;
  return { updates: count, msPerNode: (newest.end - start) / count, msAlone, end: newest.end };
}

/**
 * A node starts soon after one has ended, unless it was away, in maintenance for instance.
 *
 * @param seen when the nodes at work entered their states, the latest moment at which they may have started.
 */
function startAfter({ end, msAlone }: Pace, seen: number): number {
  return seen - end > 2 * msAlone ? seen : end;
}

interface ToDo {
  readonly nodes: number;
  /** How many of them go one after another at least. */
  readonly rounds: number;
}

function left({ msPerNode, msAlone }: Pace, { nodes, rounds }: ToDo, since: number, now: number): number {
  return Math.max(0, Math.max(msPerNode * nodes, msAlone * rounds) - Math.max(0, now - since));
}

/** The updates of the newest earlier rollout, of nodes that had to do then what they have to do now. */
function lastRollout(waiting: readonly TimedNode[]): readonly TimedUpdate[] {
  const earlier = waiting.flatMap(({ planned, last }) =>
    planned !== undefined && last?.result === 'Succeeded' && disrupts(last.actions) === disrupts(planned)
      ? [last]
      : [],
  );
  const newest = earlier.toSorted((a, b) => b.end - a.end)[0];
  return ofLatestRollout(
    earlier.filter(({ config }) => config === newest?.config),
    earlier.filter(({ config }) => config !== newest?.config),
  );
}

function disrupts(actions: readonly string[]): boolean {
  return actions.some((action) => action === 'Drain' || action === 'Reboot');
}
