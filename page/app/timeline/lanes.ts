import { by } from '../../../api/order.ts';
import type { SegmentRow } from '../../model/view.ts';

/** One update of a node: its consecutive segments. */
export interface NodeUpdate {
  readonly node: string;
  readonly start: number;
  /** When it ended; the current time while it continues. */
  readonly end: number;
  readonly segments: readonly SegmentRow[];
}

/** ms between two segments of one update: the daemon starts shortly after the grant. */
const GAP_MS = 60_000;
/** ms between two updates in a lane, so that they are distinguishable. */
const LANE_GAP_MS = 1_000;

/**
 * Joins consecutive segments of a node.
 *
 * @param now ms since the epoch.
 */
export function updatesOf(segments: readonly SegmentRow[], now: number): readonly NodeUpdate[] {
  const updates: NodeUpdate[] = [];
  for (const [node, own] of Map.groupBy(segments, (segment) => segment.node)) {
    let open: SegmentRow[] = [];
    let end = Number.NEGATIVE_INFINITY;
    const close = () => {
      const first = open[0];
      if (first !== undefined) updates.push({ node, start: first.start, end, segments: open });
      open = [];
    };
    for (const segment of own.toSorted((a, b) => a.start - b.start)) {
      if (segment.start > end + GAP_MS) close();
      open.push(segment);
      end = Math.max(open.length === 1 ? 0 : end, segment.end ?? now);
    }
    close();
  }
  return updates.toSorted(
    by(
      ({ start }) => start,
      ({ node }) => node,
    ),
  );
}

/** The room that an update takes in a lane, ms since the epoch. */
interface TimeRoom {
  readonly start: number;
  readonly end: number;
}

/**
 * Packs updates into lanes: as many as there were concurrent updates, however many nodes a rollout has.
 *
 * @param rooms by their start.
 */
export function lanesOf<T extends TimeRoom>(rooms: readonly T[]): readonly (readonly T[])[] {
  const lanes: T[][] = [];
  for (const room of rooms) {
    const free = lanes.find((lane) => (lane.at(-1)?.end ?? 0) + LANE_GAP_MS <= room.start);
    if (free === undefined) lanes.push([room]);
    else free.push(room);
  }
  return lanes;
}

/** An update with the name of its node, which takes room as well if it is longer than the bar. */
export interface NamedUpdate extends TimeRoom {
  readonly update: NodeUpdate;
  /** Where the name stands; undefined: it is not shown. */
  readonly name: 'within' | 'after' | 'before' | undefined;
}

/**
 * Places the name of each update within its bar, or else behind it, or before one that ends with the chart.
 *
 * @param span what the chart shows.
 * @param lengthOf ms that a name takes on the axis.
 */
export function withNames(
  updates: readonly NodeUpdate[],
  { from, to }: TimeSpan,
  lengthOf: (name: string) => number,
): readonly NamedUpdate[] {
  const named = updates.map((update): NamedUpdate => {
    const [start, end, length] = [Math.max(update.start, from), update.end, lengthOf(update.node)];
    if (length <= end - start) return { update, start, end, name: 'within' };
    return end + length <= to
      ? { update, start, end: end + length, name: 'after' }
      : { update, start: start - length, end, name: 'before' };
  });
  return named.toSorted(by(({ start }) => start));
}

/** @returns the updates alone, where there are too many for names. */
export function withoutNames(updates: readonly NodeUpdate[]): readonly NamedUpdate[] {
  return updates.map((update) => ({ update, start: update.start, end: update.end, name: undefined }));
}

/** ms without an update that separate two rollouts. */
const PART_MS = 15 * 60_000;
/** ms; the minimum width of a chart. */
const NARROWEST_MS = 3 * 60_000;

/** A span of time to show, ms since the epoch. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** @returns the time of the last rollout, with a margin on both sides; up to now while it continues. */
export function lastRollout(segments: readonly SegmentRow[], now: number): TimeSpan {
  const newestFirst = segments.toSorted((a, b) => (b.end ?? now) - (a.end ?? now));
  const last = newestFirst[0];
  if (last === undefined) return { from: now - NARROWEST_MS, to: now };
  let from = last.start;
  for (const { start, end = now } of newestFirst) {
    if (end < from - PART_MS) break;
    from = Math.min(from, start);
  }
  const goesOn = segments.some(({ end }) => end === undefined);
  const to = goesOn ? now : (last.end ?? now);
  const room = Math.max(0, NARROWEST_MS - (to - from)) / 2 + (to - from) * 0.02;
  return { from: from - room, to: goesOn ? now : Math.min(now, to + room) };
}

/** @returns for each kind the number and median duration of completed segments. */
export function summarise(segments: readonly SegmentRow[]) {
  return (['drain', 'live', 'reboot'] as const).flatMap((kind) => {
    const spans = segments
      .filter((segment) => segment.kind === kind)
      .flatMap(({ start, end }) => (end === undefined ? [] : [end - start]))
      .toSorted((a, b) => a - b);
    const median = spans[Math.floor(spans.length / 2)];
    return median === undefined ? [] : [{ kind, count: spans.length, medianMs: median }];
  });
}

const STEPS_MS = [
  10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
];

/** @returns the times of an axis, at most `most` of them, at round times. */
export function ticks(from: number, to: number, most: number): readonly number[] {
  const step = STEPS_MS.find((each) => (to - from) / each <= most) ?? (STEPS_MS.at(-1) as number);
  const first = Math.ceil(from / step) * step;
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / step) + 1) },
    (_, index) => first + index * step,
  );
}
