import type { SegmentRow, Table } from '../model/view.ts';

/** ms for which the timeline reaches back. */
export const TIMELINE_MS = 24 * 3600 * 1000;
/** Segments that are kept, the newest: a fleet of 5,000 nodes with a drain and a reboot each, and room for a second rollout. */
const MOST_SEGMENTS = 20_000;
/** ms by which the daemon's own times and those of conditions, which are whole seconds, differ for one thing. */
const SLACK_MS = 2_000;

/**
 * The timeline: what the objects tell now, and what they told before of spans that nothing tells of any more.
 *
 * @param known the timeline so far.
 * @param read what the objects tell.
 * @param now ms since the epoch: a span that nothing tells of any more ended then, where nothing says when.
 */
export function remember(
  known: Table<SegmentRow>,
  read: readonly SegmentRow[],
  now: number,
): Table<SegmentRow> {
  const told = new Map(read.map((row) => [keyOf(row), row]));
  const ofNode = Map.groupBy(read, ({ node }) => node);
  const kept = Object.values(known).flatMap((row): SegmentRow[] => {
    if (told.has(keyOf(row))) return [];
    const others = ofNode.get(row.node) ?? [];
    if (others.some((other) => tellsOf(other, row))) return [];
    return [row.end === undefined ? { ...row, end: endOf(row, others, now) } : row];
  });
  const rows = [...kept, ...told.values()].filter(({ end = now }) => end > now - TIMELINE_MS);
  const newest =
    rows.length <= MOST_SEGMENTS ? rows : rows.toSorted((a, b) => b.start - a.start).slice(0, MOST_SEGMENTS);
  return Object.fromEntries(newest.map((row) => [keyOf(row), row]));
}

function keyOf({ node, kind, start }: SegmentRow): string {
  return `${node} ${kind} ${Math.floor(start / 1000)}`;
}

/** A daemon's record of an update, or a later look at it, replaces what was seen of it under way. */
function tellsOf(other: SegmentRow, row: SegmentRow): boolean {
  if (other.kind !== row.kind) return false;
  const overlap =
    other.start <= (row.end ?? Number.POSITIVE_INFINITY) &&
    row.start <= (other.end ?? Number.POSITIVE_INFINITY) + SLACK_MS;
  return overlap && (row.end === undefined || other.end !== undefined || other.start <= row.start);
}

/** What the node did next began when this ended. */
function endOf(row: SegmentRow, others: readonly SegmentRow[], now: number): number {
  const next = others.map(({ start }) => start).filter((start) => start >= row.start);
  return Math.min(now, ...next);
}
