import type { TargetedPointerEvent } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { plural } from '../../../api/plural.ts';
import { duration } from '../../../view/words.ts';
import type { SegmentKind, SegmentRow, Table } from '../../model/view.ts';
import { clockTime } from '../times.ts';
import { Zone } from '../zone.tsx';
import {
  lanesOf,
  lastRollout,
  type NamedUpdate,
  type NodeUpdate,
  summarise,
  type TimeSpan,
  ticks,
  updatesOf,
  withNames,
  withoutNames,
} from './lanes.ts';

const KINDS: readonly SegmentKind[] = ['drain', 'live', 'reboot'];
const KIND_WORDS: Readonly<Record<SegmentKind, string>> = {
  drain: 'drain',
  live: 'live change',
  reboot: 'reboot',
};

/** ms that are shown; undefined: the last rollout. */
const WINDOWS = [
  { label: 'Last rollout', ms: undefined },
  { label: '2 hours', ms: 2 * 3_600_000 },
  { label: '24 hours', ms: 24 * 3_600_000 },
] as const;

/** Pixels. */
const AXIS = 22;
const MOST_HEIGHT = 360;
const LANE = { most: 18, named: 14, least: 1.5 };
/** The lanes and updates that are shown with names. */
const NAMED = { lanes: 40, updates: 600 };
const PIXELS_PER_TICK = 110;

/** ms between two drawings: a second, or the width of a pixel. */
const TICK = { least: 1_000, most: 30_000, pixels: 1_000 };

/** The drains, live changes and reboots of nodes over time. It is drawn by the clock, not by changes. */
export function Timeline({ segments }: { readonly segments: Table<SegmentRow> }) {
  const [windowMs, setWindowMs] = useState<number>();
  const { now, all, span } = useTicks(segments, windowMs);
  const body = useMemo(() => <Body all={all} span={span} now={now} />, [all, span, now]);
  return (
    <section id="timeline" aria-labelledby="timeline-title">
      <div class="title-row">
        <h2 id="timeline-title">Timeline</h2>
        <fieldset class="switch">
          <legend class="visually-hidden">Time range</legend>
          {WINDOWS.map(({ label, ms }) => (
            <label key={label}>
              <input type="radio" name="window" checked={ms === windowMs} onChange={() => setWindowMs(ms)} />{' '}
              {label}
            </label>
          ))}
        </fieldset>
      </div>
      {body}
    </section>
  );
}

interface TimelineView {
  readonly now: number;
  readonly all: readonly SegmentRow[];
  readonly span: TimeSpan;
}

/** The layout of thousands of updates is slow, so changes appear at the next tick. */
function useTicks(segments: Table<SegmentRow>, windowMs: number | undefined): TimelineView {
  const latest = useRef(segments);
  latest.current = segments;
  const [view, setView] = useState(() => viewAt(segments, windowMs));
  const spanMs = view.span.to - view.span.from;
  const tick = Math.round(Math.min(TICK.most, Math.max(TICK.least, spanMs / TICK.pixels)) / 1_000) * 1_000;
  useEffect(() => {
    setView(viewAt(latest.current, windowMs));
    const timer = setInterval(() => setView(viewAt(latest.current, windowMs)), tick);
    return () => clearInterval(timer);
  }, [windowMs, tick]);
  return view;
}

function viewAt(segments: Table<SegmentRow>, windowMs: number | undefined): TimelineView {
  const now = Date.now();
  const all = Object.values(segments);
  return {
    now,
    all,
    span: windowMs === undefined ? lastRollout(all, now) : { from: now - windowMs, to: now },
  };
}

function Body({ all, span, now }: TimelineView) {
  const shown = all.filter(({ start, end = now }) => end > span.from && start < span.to);
  if (shown.length === 0) return <p class="quiet">No node was updated in this period.</p>;
  return (
    <>
      <Summary segments={shown} />
      <Chart updates={updatesOf(shown, now)} span={span} now={now} />
    </>
  );
}

/** The chart as text. */
function Summary({ segments }: { readonly segments: readonly SegmentRow[] }) {
  const going = segments.filter(({ end }) => end === undefined).length;
  const failed = segments.filter((segment) => segment.failed === true).length;
  return (
    <ul class="legend">
      {summarise(segments).map(({ kind, count: number, medianMs }) => (
        <li key={kind}>
          <span class={`span-sample ${kind}`} aria-hidden="true" /> <b>{number}</b> {KIND_WORDS[kind]}
          {number === 1 ? '' : 's'}, {duration(medianMs)} <span class="quiet">median</span>
        </li>
      ))}
      {failed === 0 ? null : (
        <li>
          <span class="span-sample failed" aria-hidden="true" /> <b>{failed}</b> failed
        </li>
      )}
      {going === 0 ? null : <li>{plural(going, 'update')} in progress</li>}
    </ul>
  );
}

/** ms; a narrower axis has seconds. */
const SECONDS_BELOW = 10 * 60_000;

interface ChartProps {
  readonly updates: readonly NodeUpdate[];
  readonly span: TimeSpan;
  readonly now: number;
}

/** One path for each kind: the layout of thousands of elements would be slow. */
function Chart({ updates, span: { from, to }, now }: ChartProps) {
  const [box, width] = useWidth();
  const [pointed, setPointed] = useState<NodeUpdate>();
  const zone = useContext(Zone);
  const lanes = useMemo(() => packed(updates, { from, to }, width), [updates, from, to, width]);
  const hasNames = lanes.some((each) => each.some(({ name }) => name !== undefined));
  const least = hasNames ? LANE.named : LANE.least;
  const lane = Math.max(least, Math.min(LANE.most, MOST_HEIGHT / lanes.length));
  const height = Math.ceil(lane * lanes.length);
  const x = (time: number) => ((Math.max(time, from) - from) / (to - from)) * width;
  const timeAt = (pixels: number) => from + (pixels / width) * (to - from);
  const point = ({ offsetX, offsetY }: TargetedPointerEvent<SVGSVGElement>) => {
    const time = timeAt(offsetX);
    const inLane = lanes[Math.floor(offsetY / lane)];
    setPointed(inLane?.find(({ start, end }) => start <= time && time <= end)?.update);
  };
  return (
    <div class="chart" ref={box}>
      <svg
        width={width}
        height={height + AXIS}
        role="img"
        aria-label="Updates of nodes over time"
        onPointerMove={point}
        onPointerLeave={() => setPointed(undefined)}
      >
        <defs>
          <pattern
            id="hatch"
            width="5"
            height="5"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect class="hatch-ground" width="5" height="5" />
            <rect class="hatch-line" width="2" height="5" />
          </pattern>
        </defs>
        {ticks(from, to, Math.max(2, width / PIXELS_PER_TICK)).map((time) => (
          <g key={time} class="tick">
            <line x1={x(time)} x2={x(time)} y1={0} y2={height + 4} />
            <text x={x(time)} y={height + AXIS - 4}>
              {clockTime(time, zone, to - from < SECONDS_BELOW ? 'seconds' : 'minutes')}
            </text>
          </g>
        ))}
        {KINDS.map((kind) => (
          <path key={kind} class={`span ${kind}`} d={pathOf(lanes, kind, { x, lane, now })} />
        ))}
        <path class="span failed" d={pathOf(lanes, 'failed', { x, lane, now })} />
        <Names lanes={lanes} lane={lane} x={x} />
      </svg>
      <p class="hovered" aria-hidden="true">
        {pointed === undefined ? null : <span>{formatUpdate(pointed, now)}</span>}
      </p>
    </div>
  );
}

interface Scale {
  readonly x: (time: number) => number;
  readonly lane: number;
  readonly now: number;
}

function pathOf(
  lanes: readonly (readonly NamedUpdate[])[],
  kind: SegmentKind | 'failed',
  { x, lane, now }: Scale,
): string {
  const gap = lane > 6 ? 2 : 0;
  // Narrower, so that kinds also differ by shape and not only by color.
  const inset = kind === 'live' ? (lane - gap) / 4 : 0;
  const parts: string[] = [];
  lanes.forEach((updates, index) => {
    for (const { update } of updates) {
      for (const { kind: own, start, end = now, failed } of update.segments) {
        if ((failed === true ? 'failed' : own) !== kind) continue;
        const left = x(start).toFixed(1);
        const right = Math.max(x(end), x(start) + 1).toFixed(1);
        const [top, high] = [index * lane + inset, lane - gap - 2 * inset];
        parts.push(`M${left} ${top.toFixed(1)}H${right}v${high.toFixed(1)}H${left}z`);
      }
    }
  });
  return parts.join('');
}

/** Pixels of a letter of a name, and of the padding around a name. */
const LETTER = 6.2;
const ROUND = 4;

const lengthOf = (name: string) => name.length * LETTER + 2 * ROUND;

/** With names, unless they would take too much room. */
function packed(
  updates: readonly NodeUpdate[],
  span: TimeSpan,
  width: number,
): readonly (readonly NamedUpdate[])[] {
  if (updates.length > NAMED.updates) return lanesOf(withoutNames(updates));
  const msPerPixel = (span.to - span.from) / width;
  const named = lanesOf(withNames(updates, span, (name) => lengthOf(name) * msPerPixel));
  return named.length <= NAMED.lanes ? named : lanesOf(withoutNames(updates));
}

/** The names of nodes; within a bar on a background, because stripes would make them unreadable. */
function Names({
  lanes,
  lane,
  x,
}: { readonly lanes: readonly (readonly NamedUpdate[])[] } & Omit<Scale, 'now'>) {
  return (
    <g class="names">
      {lanes.flatMap((updates, index) =>
        updates.map(({ update: { node, start, end }, name }) => {
          if (name === undefined) return null;
          const left =
            name === 'within' ? x(start) + 2 : name === 'after' ? x(end) : x(start) - lengthOf(node);
          return (
            <g key={`${node} ${start}`}>
              {name === 'within' ? (
                <rect x={left} y={index * lane + 2} width={lengthOf(node)} height={lane - 6} rx={2} />
              ) : null}
              <text x={left + ROUND} y={index * lane + lane / 2 + 3}>
                {node}
              </text>
            </g>
          );
        }),
      )}
    </g>
  );
}

function formatUpdate({ node, segments }: NodeUpdate, now: number): string {
  const spans = segments.map(({ kind, start, end, failed }) => {
    const length = duration((end ?? now) - start);
    return `${KIND_WORDS[kind]} ${length}${end === undefined ? ' so far' : ''}${failed === true ? ' (failed)' : ''}`;
  });
  return `${node}: ${spans.join(', ')}`;
}

/** @returns a ref for an element, and the width of that element in pixels. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    if (element.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 800)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}
