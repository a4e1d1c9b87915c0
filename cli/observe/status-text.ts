import { formatDuration } from '../../api/duration.ts';
import { toSeconds } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { visibleLine } from '../../api/visible-text.ts';
import type { BuildView, HoldView, NodeView, PoolView } from '../../view/schemas.ts';
import { formatHold, formatTimeLeft } from '../../view/words.ts';
import { narrowedTable, sentenceTable, wrapped } from '../command-line/fitted-text.ts';
import type { Tones } from '../command-line/output.ts';
import { everyNode, type NodeGroup, nodeRows } from './node-rows.ts';
import { flagsOf, formatReason, stagingOf } from './node-text.ts';
import { pinnedImagesLines } from './pinned-images-lines.ts';
import { shortNames } from './short-names.ts';
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
  ...{ error: 'bad', degraded: 'bad', Degraded: 'bad', Failed: 'bad', RolloutStopped: 'bad' },
  ...{
    warning: 'careful',
    verifying: 'careful',
    draining: 'careful',
    rebooting: 'careful',
    applying: 'careful',
  },
  ...{ Paused: 'careful', Unmanaged: 'careful', NothingBegins: 'careful', MaxUnavailableReached: 'careful' },
  ...{ updated: 'good', Updated: 'good' },
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
  const shortRows = (rows: readonly string[][]) => rows.map((row) => row.map(short));
  const blocks = [
    sentences([
      layeringLine(view),
      ...[...view.remarks, ...triedIn(view)].map((remark) => `warning: ${remark}`),
    ]),
    view.pools.length === 0
      ? []
      : narrowedTable(
          poolHead(wide),
          shortRows(view.pools.map((pool) => poolRow(pool, options))),
          3,
          columns,
        ),
    sentences(view.pools.flatMap((pool) => [...poolDetail(pool, now), ...pinnedImagesLines(pool)])),
    view.builds.length === 0
      ? []
      : sentenceTable(BUILD_HEAD, shortRows(view.builds.map((build) => buildRow(build, now))), columns),
    groups.length === 0
      ? []
      : sentenceTable(nodeHead(wide), shortRows(groups.map((group) => nodeRow(group, options))), columns),
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

function triedIn({ pools }: StatusView): readonly string[] {
  return pools.flatMap(({ name, tried }) => (tried === undefined ? [] : [`pool ${name}: ${tried}`]));
}

/** @returns one node in detail, with names in full. @param now ms since the epoch. */
export function formatNode(node: NodeView, now: number, columns?: number): string {
  const { verification } = node;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['pool', node.pool],
    ['state', `${node.state}${node.since === undefined ? '' : `, ${ago(node.since, now)}`}`],
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

function poolHead(wide: boolean): string[] {
  const head = ['POOL', 'STATE', 'UPDATED', 'UNAVAILABLE', 'SINCE', 'CONFIG'];
  return wide ? [...head, 'RUNNING', 'IMAGE'] : head;
}

function poolRow(
  { name, state, nodes, config, image, since }: PoolView,
  { wide, now }: TextOptions,
): string[] {
  const own = (configName: string | undefined) => configName?.replace(`rendered-${name}-`, '') ?? '-';
  return [
    name,
    state,
    `${nodes.updated}/${nodes.total}`,
    String(nodes.unavailable),
    since === undefined ? '-' : ago(since, now),
    ...(wide ? [config.desired ?? '-', config.running ?? '-', image ?? '-'] : [own(config.desired)]),
  ];
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
  return kind === 'window-open' || kind === 'window-closed' || kind === 'next-reboot';
}

/** @returns a function that writes a time: on the day of `now` as a clock does. */
function atTime(now: number): (time: number) => string {
  const today = toSeconds(new Date(now)).slice(0, 10);
  return (time) => {
    const [day = '', clock = ''] = toSeconds(new Date(time)).split('T');
    return day === today ? `${clock.slice(0, 5)} UTC` : `${day} ${clock.slice(0, 5)} UTC`;
  };
}

const BUILD_HEAD = ['BUILD', 'POOL', 'STATE', 'SINCE', 'MESSAGE'];

function buildRow({ name, pool, state, since, what, lastLine }: BuildView, now: number): string[] {
  const message = (state === 'Failed' ? what : lastLine) ?? lastLine ?? what ?? '';
  return [name, pool, state, since === undefined ? '-' : ago(since, now), message];
}

function nodeHead(wide: boolean): string[] {
  const [head, message] = [['NODE', 'POOL', 'STATE', 'SINCE'], 'MESSAGE'];
  return wide ? [...head, message, 'MODE', 'LEASE', 'CONFIG', 'IMAGE'] : [...head, message];
}

function nodeRow({ nodes, message }: NodeGroup, { wide, now }: TextOptions): string[] {
  const [first] = nodes;
  const { name, pool, state, mode, leaseHolder, config, image } = first;
  const [since] = nodes.flatMap((node) => node.since ?? []).toSorted(by((time) => Date.parse(time)));
  return [
    nodes.length === 1 ? name : `${name} and ${nodes.length - 1} more`,
    pool,
    state,
    since === undefined ? '-' : ago(since, now),
    message,
    ...(wide ? [mode ?? '-', leaseHolder ?? '-', config.current ?? '-', image?.current ?? '-'] : []),
  ];
}

function change(from: string | undefined, to: string | undefined): string {
  return from === to ? (from ?? '-') : `${from ?? 'nothing'} -> ${to ?? 'none'}`;
}

function ago(time: string, now: number): string {
  return formatDuration(now - Date.parse(time));
}
