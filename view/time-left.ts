import { statesAtWork } from '../api/node-state.ts';
import type { HoldView, NodeView, PoolView } from './schemas.ts';

/** How long a rollout will take until the last node has taken it. */
export type TimeLeft = NonNullable<PoolView['timeLeft']>;

/** A node of the pool, as far as the estimate needs it. Actions are as {@link formatAction} writes them. */
export interface TimedNode
  extends Pick<NodeView, 'state' | 'since' | 'obstacle' | 'nextBoot' | 'blockedBy' | 'verification'> {
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

/** While one of these holds a pool, no node starts, so there is nothing to estimate. */
const STOPPING: ReadonlySet<HoldView['kind']> = new Set([
  'paused',
  'window-closed',
  'stopped',
  'unreadable',
  'unmanaged',
  'waiting',
]);

/**
 * Estimates from the pace of nodes that were updated: the time from the start of the first of them to the end of the
 * last, per node. So drains, and how many nodes go at a time, are in it.
 *
 * @param members the nodes of the pool.
 * @param now ms since the epoch.
 * @returns undefined where nothing is left but reboots by others, somebody or something holds the pool, a node at work
 *   comes no further, or no node was updated yet.
 */
export function timeLeft(
  { state, paused, holds = [] }: Pick<PoolView, 'state' | 'paused' | 'holds'>,
  members: readonly TimedNode[],
  now: number,
): TimeLeft | undefined {
  const isOver = state === 'Updated' || state === 'Degraded';
  if (isOver || paused || holds.some(({ kind }) => STOPPING.has(kind))) return undefined;
  const leftToOthers = holds.some(({ kind }) => kind === 'next-reboot');
  const isOthers = ({ planned = [], nextBoot }: TimedNode) =>
    nextBoot === true || (leftToOthers && planned.includes('Reboot'));
  const waiting = members.filter(
    (node) => isToCome(node) && (statesAtWork.has(node.state) || !isOthers(node)),
  );
  if (waiting.length === 0 || waiting.some(isStuck)) return undefined;
  const done = members.flatMap(({ state: is, last }) =>
    is === 'updated' && last?.ofTarget === true && last.result === 'Succeeded' ? [last] : [],
  );
  const latest = paceOf(done);
  if (latest !== undefined) {
    return { ms: left(latest, waiting.length, latest.end, now), updates: latest.updates, of: 'this' };
  }
  const before = paceOf(lastRollout(waiting));
  if (before === undefined) return undefined;
  const starts = waiting.flatMap((node) =>
    statesAtWork.has(node.state) && node.since !== undefined ? [Date.parse(node.since)] : [],
  );
  return {
    ms: left(before, waiting.length, Math.min(now, ...starts), now),
    updates: before.updates,
    of: 'last',
  };
}

/** Failed nodes, and those that rollouts skip, are waited for by nobody. */
function isToCome({ state, obstacle }: TimedNode): boolean {
  return obstacle === undefined && (statesAtWork.has(state) || state === 'staging' || state === 'staged');
}

/** Until a pod may be evicted, or a health check passes, is nothing that earlier updates tell. */
function isStuck({ blockedBy, verification }: TimedNode): boolean {
  return blockedBy !== undefined || verification?.check !== undefined;
}

interface Pace {
  readonly updates: number;
  readonly msPerNode: number;
  /** When the latest update ended. */
  readonly end: number;
}

function paceOf(updates: readonly TimedUpdate[]): Pace | undefined {
  const latest = updates.toSorted((a, b) => b.end - a.end).slice(0, MOST_UPDATES);
  const newest = latest[0];
  if (newest === undefined) return undefined;
  const start = Math.min(...latest.map((update) => update.start));
  return { updates: latest.length, msPerNode: (newest.end - start) / latest.length, end: newest.end };
}

function left({ msPerNode }: Pace, nodes: number, since: number, now: number): number {
  return Math.max(0, msPerNode * nodes - Math.max(0, now - since));
}

/** The updates of the newest earlier rollout, of nodes that had to do then what they have to do now. */
function lastRollout(waiting: readonly TimedNode[]): readonly TimedUpdate[] {
  const earlier = waiting.flatMap(({ planned, last }) =>
    planned !== undefined && last?.result === 'Succeeded' && disrupts(last.actions) === disrupts(planned)
      ? [last]
      : [],
  );
  const newest = earlier.toSorted((a, b) => b.end - a.end)[0];
  return earlier.filter(({ config }) => config === newest?.config);
}

function disrupts(actions: readonly string[]): boolean {
  return actions.some((action) => action === 'Drain' || action === 'Reboot');
}
