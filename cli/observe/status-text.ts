import { formatDuration } from '../../api/duration.ts';
import { toSeconds } from '../../api/object.ts';
import { plural } from '../../api/plural.ts';
import { visibleLine } from '../../api/visible-text.ts';
import type { HoldView, NodeView, PoolView } from '../../view/schemas.ts';
import { formatHold, formatTimeLeft } from '../../view/words.ts';
import { narrowedTable, sentenceTable, wrapped } from '../command-line/fitted-text.ts';
import type { Tones } from '../command-line/output.ts';
import { everyNode, nodeRows } from './node-rows.ts';
import { flagsOf, formatHandover, formatReason, stagingOf } from './node-text.ts';
import { pinnedImagesLines } from './pinned-images-lines.ts';
import { shortNames } from './short-names.ts';
import { BUILD_COLUMNS, type Column, NODE_COLUMNS, POOL_COLUMNS } from './status-columns.ts';
import type { StatusView } from './status-view.ts';

interface TextOptions {
  /** More columns, and names in full. */
  readonly wide: boolean;
  /** Every node, including those that need no attention, unless they are too many. */
  readonly allNodes: boolean;
  /** ms since the epoch. */
  readonly now: number;
  /** Of the terminal; undefined: not a terminal. */
  readonly columns?: number | undefined;
}

/** States of pools, builds and nodes: what failed, what needs a look, and what is done. */
export const STATUS_TONES: Tones = {
  error: 'bad',
  degraded: 'bad',
  Degraded: 'bad',
  Failed: 'bad',
  RolloutStopped: 'bad',
  warning: 'careful',
  verifying: 'careful',
  draining: 'careful',
  rebooting: 'careful',
  applying: 'careful',
  Paused: 'careful',
  Unmanaged: 'careful',
  NothingBegins: 'careful',
  MaxUnavailableReached: 'careful',
  updated: 'good',
  Updated: 'good',
};

/** Of more nodes, those that failed or are at work have a row, and the others one for what they wait for. */
const MOST_NODES = 50;

/** @returns the view as text: the state of layering, then pools, builds and nodes. */
export function formatStatus(view: StatusView, options: TextOptions): string {
  const { wide, allNodes, now } = options;
  const columns = wide ? undefined : options.columns;
  const short = wide ? (text: string) => text : shortNames([JSON.stringify(view)]);
  const sentences = (lines: readonly string[]) =>
    lines.flatMap((line) => wrapped(short(line), '  ', columns));
  const { groups, more, settled } =
    allNodes && view.nodes.length <= MOST_NODES ? everyNode(view.nodes, now) : nodeRows(view.nodes, now);
  const table = <Row>(all: readonly Column<Row>[], rows: readonly Row[]) => {
    const shown = all.filter(({ only }) => only === undefined || (only === 'wide') === wide);
    const cells = rows.map((row) => shown.map(({ cell }) => short(cell(row, now))));
    return [shown.map(({ head }) => head), cells] as const;
  };
  const blocks = [
    sentences([
      layeringLine(view),
      ...[...view.remarks, ...view.pools.flatMap(triedWarning)].map((remark) => `warning: ${remark}`),
    ]),
    view.pools.length === 0 ? [] : narrowedTable(...table(POOL_COLUMNS, view.pools), 3, columns),
    sentences(view.pools.flatMap((pool) => poolLines(pool, now))),
    view.builds.length === 0 ? [] : sentenceTable(...table(BUILD_COLUMNS, view.builds), columns),
    groups.length === 0 ? [] : sentenceTable(...table(NODE_COLUMNS, groups), columns),
    [
      ...(more > 0 ? [`and ${plural(more, 'more node')} at work`] : []),
      ...(settled > 0 ? [formatSettled(settled, view)] : []),
    ],
  ];
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** A node runs what it is assigned; a pool may have a target that it has yet to assign: its image is not built. */
function formatSettled(settled: number, { pools }: StatusView): string {
  const updated = pools.reduce((sum, { nodes }) => sum + nodes.updated, 0);
  const nodes = plural(settled, 'node');
  if (settled > updated)
    return `${nodes} ${settled === 1 ? 'runs what it is' : 'run what they are'} assigned`;
  return `${nodes} ${settled === 1 ? 'is' : 'are'} up to date`;
}

/** What is said of a pool below the table: its progress, and what its features have to report. */
const POOL_LINES: readonly ((pool: PoolView, now: number) => readonly string[])[] = [
  poolDetail,
  pinnedImagesLines,
];

/** @returns what is said of a pool below the table of pools. @param now ms since the epoch. */
export function poolLines(pool: PoolView, now: number): readonly string[] {
  return POOL_LINES.flatMap((lines) => lines(pool, now));
}

function triedWarning({ name, tried }: PoolView): readonly string[] {
  return tried === undefined ? [] : [`pool ${name}: ${tried}`];
}

/** @returns one node in detail, with names in full. @param now ms since the epoch. */
export function formatNode(node: NodeView, now: number, columns?: number): string {
  const { verification } = node;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['pool', node.pool],
    [
      'state',
      `${node.state}${node.since === undefined ? '' : `, ${formatDuration(now - Date.parse(node.since))}`}`,
    ],
    ['message', node.what],
    ['to do', node.advice],
    ['health check', verification?.check],
    ['output', verification?.output],
    ['time left', verification?.deadline && formatDuration(Date.parse(verification.deadline) - now)],
    ...(node.blockedBy ?? []).map(({ pod, reason }) => ['blocked by', `pod ${pod}: ${reason}`] as const),
    ['skipped', node.obstacle],
    ['node', flagsOf(node) || 'ready'],
    ['actions', node.actions],
    ['staged', stagingOf(node)],
    ['handed over', node.handedOver && formatHandover(node.handedOver)],
    ['lease', node.leaseHolder],
    ['mode', node.mode],
    ['OS backend', node.osBackend],
    ['config', change(node.config.current, node.config.desired)],
    ['image', node.image === undefined ? undefined : change(node.image.current, node.image.desired)],
  ];
  const width = Math.max(...rows.map(([name, value]) => (value === undefined ? 0 : name.length)));
  const indent = ' '.repeat(width + 4);
  const lines = rows.flatMap(([name, value]) => {
    const [first = '', ...others] = value?.split('\n') ?? [];
    if (value === undefined) return [];
    const all = [`  ${name.padEnd(width)}  ${first}`, ...others.map((line) => indent + line)];
    return all.flatMap((line) => wrapped(line, indent, columns));
  });
  return [`node ${node.name}`, ...lines].join('\n');
}

/** @returns the changes between two views, one line each and without times: for `--watch` without a terminal. */
export function changedLines(before: StatusView | undefined, after: StatusView): readonly string[] {
  const old = before === undefined ? new Map<string, string>() : linesByName(before);
  const lines = linesByName(after);
  const changed = [...lines].filter(([subject, line]) => old.get(subject) !== line).map(([, line]) => line);
  const builds = new Set(before?.builds.map(({ name }) => `build ${name}`));
  const gone = [...old.keys()].filter((subject) => !lines.has(subject));
  // A view contains only builds that are in progress or failed.
  const over = gone.map(
    (subject) => `${subject}: ${builds.has(subject) ? 'no longer in progress' : 'deleted'}`,
  );
  return [...changed, ...over];
}

function linesByName(view: StatusView): ReadonlyMap<string, string> {
  const line = (subject: string, state: string, what: string | undefined) =>
    [
      subject,
      visibleLine(`${subject}: ${state}${what === undefined || what === '' ? '' : `: ${what}`}`),
    ] as const;
  return new Map([
    ['layering', layeringLine(view)] as const,
    ...view.pools.map((pool) =>
      line(`pool ${pool.name}`, `${pool.state} ${pool.nodes.updated}/${pool.nodes.total}`, pool.what),
    ),
    ...view.builds.map((build) => line(`build ${build.name}`, build.state, build.lastLine ?? build.what)),
    ...view.nodes.map((node) => line(`node ${node.name}`, node.state, formatReason(node, undefined))),
  ]);
}

function layeringLine({ layering }: StatusView): string {
  const builder = {
    running: 'the Machine OS Builder is running',
    starting: 'the Machine OS Builder is starting',
    absent: '',
  };
  const parts = [layering.switch, layering.problems ?? '', builder[layering.builder]];
  return `layering: ${parts.filter((part) => part !== '').join('; ')}`;
}

/** What a pool waits for is too long for a column. */
function poolDetail({ name, state, what, holds = [], timeLeft }: PoolView, now: number): string[] {
  const progress = state === 'Updated' || what === undefined ? [] : [what];
  const held = holds.filter(({ kind }) => isNews(kind, state)).map((hold) => formatHold(hold, atTime(now)));
  const left =
    timeLeft === undefined ? [] : [formatTimeLeft(timeLeft)].map(({ text, basis }) => text + basis);
  const severity = state === 'Degraded' ? 'error: ' : '';
  return [
    ...progress.map((text) => `${severity}pool ${name}: ${text}`),
    ...[...held, ...left].map((text) => `pool ${name}: ${text}`),
  ];
}

/** Of a pool that is Degraded, the message has what is wrong alone; of another one, what its nodes wait for. */
function isNews(kind: HoldView['kind'], state: string): boolean {
  if (kind === 'tried') return false;
  if (state === 'Degraded') return kind !== 'stopped' && kind !== 'unreadable';
  if (state === 'Updated') return kind === 'paused';
  return (
    kind === 'window-open' || kind === 'window-closed' || kind === 'next-reboot' || kind === 'cluster-api'
  );
}

/** @returns a function that writes a time: on the day of `now` as a clock does. */
function atTime(now: number): (time: number) => string {
  const today = toSeconds(new Date(now)).slice(0, 10);
  return (time) => {
    const [day = '', clock = ''] = toSeconds(new Date(time)).split('T');
    return day === today ? `${clock.slice(0, 5)} UTC` : `${day} ${clock.slice(0, 5)} UTC`;
  };
}

function change(from: string | undefined, to: string | undefined): string {
  return from === to ? (from ?? '-') : `${from ?? 'nothing'} -> ${to ?? 'none'}`;
}
