import type { HoldRow, LastUpdate, NodeRow, PlanRow, PoolRow, Table } from '../page/model/view.ts';

/** How long a rollout will take until the last node has taken it. */
export interface TimeLeft {
  /** 0: the nodes take longer than those that it is estimated from. */
  readonly ms: number;
  /** How many updates it is estimated from. */
  readonly updates: number;
  /** Whether these are of this rollout, or of the one before. */
  readonly of: 'this' | 'last';
}

/** The latest updates count: the first nodes go one by one, and the pace may change. */
const MOST_UPDATES = 50;

/** While one of these holds a pool, no node starts, so there is nothing to estimate. */
const STOPPING: ReadonlySet<HoldRow['kind']> = new Set([
  'paused',
  'window-closed',
  'stopped',
  'unreadable',
  'unmanaged',
  'waiting',
]);

/**
 * Estimates from the pace of nodes that were updated: the time from the start of the first of them to the end of the last,
 * per node. So drains, and how many nodes go at a time, are in it.
 *
 * @param members the nodes of the pool.
 * @param now ms since the epoch.
 * @returns undefined where nothing is left but reboots by others, somebody or something holds the pool, or no node was
 *   updated yet.
 */
export function timeLeft(
  pool: Pick<PoolRow, 'tone' | 'holds'>,
  members: readonly NodeRow[],
  plans: Table<PlanRow>,
  now: number,
): TimeLeft | undefined {
  if (pool.tone !== 'busy' || pool.holds.some(({ kind }) => STOPPING.has(kind))) return undefined;
  const isOthers = pool.holds.some(({ kind }) => kind === 'next-reboot')
    ? ({ plan }: NodeRow) => plans[plan ?? '']?.actions.includes('Reboot') ?? false
    : () => false;
  const waiting = members.filter(
    (node) => isToCome(node) && (AT_WORK.has(node.state) || !(node.armed === true || isOthers(node))),
  );
  if (waiting.length === 0) return undefined;
  const done = members.flatMap(({ state, last }) =>
    state === 'updated' && last?.ofTarget === true && last.result === 'Succeeded' ? [last] : [],
  );
  const latest = paceOf(done);
  if (latest !== undefined) {
    return { ms: left(latest, waiting.length, latest.end, now), updates: latest.updates, of: 'this' };
  }
  const before = paceOf(lastRollout(waiting, plans));
  if (before === undefined) return undefined;
  const started = Math.min(
    now,
    ...waiting.flatMap(({ state, since }) => (AT_WORK.has(state) ? (since ?? []) : [])),
  );
  return { ms: left(before, waiting.length, started, now), updates: before.updates, of: 'last' };
}

const AT_WORK: ReadonlySet<NodeRow['state']> = new Set(['draining', 'applying', 'rebooting']);

/** Failed nodes, and those that rollouts skip, are waited for by nobody. */
function isToCome({ state, maintenance }: NodeRow): boolean {
  return (AT_WORK.has(state) || state === 'preparing' || state === 'waiting') && maintenance === undefined;
}

interface Pace {
  readonly updates: number;
  readonly msPerNode: number;
  /** When the latest update ended. */
  readonly end: number;
}

function paceOf(updates: readonly LastUpdate[]): Pace | undefined {
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
function lastRollout(waiting: readonly NodeRow[], plans: Table<PlanRow>): readonly LastUpdate[] {
  const isDisruptive = (plan: string | undefined) =>
    plans[plan ?? '']?.actions.some((action) => action === 'Drain' || action === 'Reboot') ?? false;
  const earlier = waiting.flatMap(({ plan, last }) =>
    plan !== undefined && last?.result === 'Succeeded' && isDisruptive(last.plan) === isDisruptive(plan)
      ? [last]
      : [],
  );
  const newest = earlier.toSorted((a, b) => b.end - a.end)[0];
  return earlier.filter(({ config }) => config === newest?.config);
}
