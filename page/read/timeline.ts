import { isDisruptive } from '../../api/disruption-action.ts';
import type { Lease } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Condition } from '../../api/object.ts';
import { conditionOf } from '../../view/conditions.ts';
import type { NodeRow, SegmentKind, SegmentRow, Table } from '../model/view.ts';

/** ms that the timeline covers. */
const TIMELINE_MS = 24 * 3600 * 1000;
/** Segments that are kept, newest first: enough for two rollouts of 5,000 nodes with a drain and a reboot each. */
const MOST_SEGMENTS = 20_000;
/** ms; tolerance for comparing the daemon's times with those of conditions, which are whole seconds. */
const SLACK_MS = 2_000;

/**
 * Continues the timeline: segments from the current objects, and earlier segments that the objects no longer contain.
 *
 * @param known the timeline so far.
 * @param read segments from the current objects.
 * @param now ms since the epoch: the end of a segment that the objects no longer contain, if nothing else shows its
 *   end.
 */
export function continueTimeline(
  known: Table<SegmentRow>,
  read: readonly SegmentRow[],
  now: number,
): Table<SegmentRow> {
  const current = new Map(read.map((row) => [keyOf(row), row]));
  const ofNode = Map.groupBy(read, ({ node }) => node);
  const kept = Object.values(known).flatMap((row): SegmentRow[] => {
    if (current.has(keyOf(row))) return [];
    const others = ofNode.get(row.node) ?? [];
    if (others.some((other) => replaces(other, row))) return [];
    return [row.end === undefined ? { ...row, end: endOf(row, others, now) } : row];
  });
  const rows = [...kept, ...current.values()].filter(({ end = now }) => end > now - TIMELINE_MS);
  const newest =
    rows.length <= MOST_SEGMENTS ? rows : rows.toSorted((a, b) => b.start - a.start).slice(0, MOST_SEGMENTS);
  return Object.fromEntries(newest.map((row) => [keyOf(row), row]));
}

function keyOf({ node, kind, start }: SegmentRow): string {
  return `${node} ${kind} ${Math.floor(start / 1000)}`;
}

/** Whether a segment replaces an earlier one of the same update: the daemon's record, or a later observation. */
function replaces(other: SegmentRow, row: SegmentRow): boolean {
  if (other.kind !== row.kind) return false;
  const overlap =
    other.start <= (row.end ?? Number.POSITIVE_INFINITY) &&
    row.start <= (other.end ?? Number.POSITIVE_INFINITY) + SLACK_MS;
  return overlap && (row.end === undefined || other.end !== undefined || other.start <= row.start);
}

/** A segment ends when the next one of its node starts. */
function endOf(row: SegmentRow, others: readonly SegmentRow[], now: number): number {
  const next = others.map(({ start }) => start).filter((start) => start >= row.start);
  return Math.min(now, ...next);
}

/**
 * The segments of a node's last update and of its current one. No object records a completed drain: continueTimeline()
 * keeps what was observed of it.
 */
export function segmentsOf(
  node: MachineConfigNode,
  state: NodeRow['state'],
  lease: Lease | undefined,
): readonly SegmentRow[] {
  const name = node.metadata.name;
  const pool = node.spec.pool.name;
  const segment = (kind: SegmentKind, start: number, end?: number): SegmentRow[] =>
    Number.isNaN(start) ? [] : [{ node: name, pool, kind, start, end }];
  return [...lastSegments(node, segment), ...currentSegments(node, state, lease, segment)];
}

type MakeSegment = (kind: SegmentKind, start: number, end?: number) => SegmentRow[];

function lastSegments({ status }: MachineConfigNode, segment: MakeSegment): SegmentRow[] {
  const update = status?.lastUpdate;
  if (update === undefined) return [];
  const rebooted =
    update.bootIDBefore !== update.bootIDAfter || update.actions.some(({ type }) => type === 'Reboot');
  const made = segment(
    rebooted ? 'reboot' : 'live',
    Date.parse(update.startedAt),
    Date.parse(update.finishedAt),
  );
  return update.result === 'Succeeded' ? made : made.map((row) => ({ ...row, failed: true as const }));
}

function currentSegments(
  { status }: MachineConfigNode,
  state: NodeRow['state'],
  lease: Lease | undefined,
  segment: MakeSegment,
): SegmentRow[] {
  const taken = Date.parse(lease?.spec?.acquireTime ?? '');
  if (state === 'draining') return segment('drain', taken);
  if (state !== 'applying' && state !== 'rebooting' && state !== 'verifying') return [];
  const actions = status?.plan?.actions ?? [];
  const disruptive = isDisruptive(actions);
  const began = beganAt(status?.conditions);
  // Between the grant and the daemon's first action the node is still out of service.
  if (began === undefined) return disruptive ? segment('drain', taken) : [];
  const reboots = state === 'rebooting' || actions.some(({ type }) => type === 'Reboot');
  const drained = disruptive && taken < began ? segment('drain', taken, began) : [];
  return [...drained, ...segment(reboots ? 'reboot' : 'live', began)];
}

/** When the daemon started to act; before that the condition is False. */
function beganAt(conditions: readonly Condition[] | undefined): number | undefined {
  const executed = conditionOf(conditions, 'UpdateExecuted');
  return executed === undefined || executed.status === 'False'
    ? undefined
    : Date.parse(executed.lastTransitionTime);
}
