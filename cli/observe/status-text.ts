import { formatDuration } from '../../api/duration.ts';
import { noun, plural } from '../../api/plural.ts';
import { visibleLine } from '../../api/visible-text.ts';
import type { BuildView, NodeView, PoolView } from '../../view/schemas.ts';
import { textTable } from '../command-line/output.ts';
import { flagsOf, formatReason, stagingOf } from './node-text.ts';
import type { StatusView } from './status-view.ts';

interface TextOptions {
  /** More columns. */
  readonly wide: boolean;
  /** Every node, including those that need no attention. */
  readonly allNodes: boolean;
  /** ms since the epoch. */
  readonly now: number;
}

/** Rows of nodes in a table; for a pool with thousands of nodes there are the counts and `-o json`. */
const MOST_NODES = 50;

/** @returns the view as text: the state of layering, then pools, builds and nodes. */
export function formatStatus(view: StatusView, options: TextOptions): string {
  const nodes = view.nodes.filter((node) => options.allNodes || needsAttention(node));
  const blocks = [
    [
      layeringLine(view),
      ...[...view.remarks, ...triedIn(view)].map((remark) => visibleLine(`warning: ${remark}`)),
    ],
    view.pools.length === 0 ? [] : poolTable(view.pools, options),
    view.pools.flatMap((pool) => [...poolDetail(pool), ...pinnedImagesLines(pool)]),
    view.builds.length === 0 ? [] : buildTable(view.builds, options),
    nodes.length === 0 ? [] : nodeTable(nodes, options),
  ];
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function triedIn({ pools }: StatusView): readonly string[] {
  return pools.flatMap(({ name, tried }) => (tried === undefined ? [] : [`pool ${name}: ${tried}`]));
}

/** @returns one node in detail. */
export function formatNode(node: NodeView, now: number): string {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['pool', node.pool],
    ['state', `${node.state}${node.since === undefined ? '' : `, ${ago(node.since, now)}`}`],
    ['message', node.what],
    ['mode', node.mode],
    ['OS backend', node.osBackend],
    ['config', change(node.config.current, node.config.desired)],
    ['image', node.image === undefined ? undefined : change(node.image.current, node.image.desired)],
    ['actions', node.actions],
    ['staged', stagingOf(node)],
    ['lease', node.leaseHolder],
    ['skipped', node.obstacle],
    ['node', flagsOf(node) || 'ready'],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(width)}  ${visibleLine(value)}`],
  );
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

function poolTable(pools: readonly PoolView[], { wide, now }: TextOptions): string[] {
  const head = [
    'POOL',
    'STATE',
    'UPDATED',
    'UNAVAILABLE',
    'CONFIG',
    'SINCE',
    ...(wide ? ['RUNNING', 'IMAGE'] : []),
  ];
  return textTable(
    head,
    pools.map(({ name, state, nodes, config, image, since }) => [
      name,
      state,
      `${nodes.updated}/${nodes.total}`,
      String(nodes.unavailable),
      config.desired ?? '-',
      since === undefined ? '-' : ago(since, now),
      ...(wide ? [config.running ?? '-', image ?? '-'] : []),
    ]),
  );
}

/** What a pool waits for is too long for a column. */
function poolDetail({ name, state, what }: PoolView): string[] {
  return state === 'Updated' || what === undefined ? [] : [visibleLine(`pool ${name}: ${what}`)];
}

/** Nodes whose problem is named; the others are in `-o json`. */
const NAMED = 3;

/** @returns the line about a pool, if it is news: nothing while every node has its images. */
function pinnedImagesLines({ name, pinnedImages: view }: PoolView): string[] {
  if (view === undefined || (view.complete === view.nodes && view.problems.length === 0)) return [];
  const { nodes, complete, problems } = view;
  const more = problems.length - NAMED;
  const parts = [
    `pool ${name}: pinned images are complete on ${complete} of ${plural(nodes, 'node')}`,
    ...problems.slice(0, NAMED).map(({ node, why }) => `${node}: ${why}`),
    ...(more > 0 ? [`and ${more} more ${noun(more, 'node')}`] : []),
  ];
  return [parts.join('; ')];
}

function buildTable(builds: readonly BuildView[], { now }: TextOptions): string[] {
  return textTable(
    ['BUILD', 'POOL', 'STATE', 'SINCE', 'MESSAGE'],
    builds.map(({ name, pool, state, since, what, lastLine }) => [
      name,
      pool,
      state,
      since === undefined ? '-' : ago(since, now),
      lastLine ?? what ?? '',
    ]),
  );
}

function nodeTable(nodes: readonly NodeView[], { wide, now }: TextOptions): string[] {
  const head = [
    'NODE',
    'POOL',
    'STATE',
    'SINCE',
    ...(wide ? ['MODE', 'CONFIG', 'IMAGE', 'LEASE'] : []),
    'MESSAGE',
  ];
  const rows = nodes
    .slice(0, MOST_NODES)
    .map((node) => [
      node.name,
      node.pool,
      node.state,
      node.since === undefined ? '-' : ago(node.since, now),
      ...(wide
        ? [
            node.mode ?? '-',
            node.config.current ?? '-',
            shortDigest(node.image?.current) ?? '-',
            node.leaseHolder ?? '-',
          ]
        : []),
      formatReason(node, now),
    ]);
  const more = nodes.length - MOST_NODES;
  return [...textTable(head, rows), ...(more > 0 ? [`and ${plural(more, 'more node')}`] : [])];
}

function needsAttention(node: NodeView): boolean {
  return node.state !== 'updated' || node.obstacle !== undefined || node.cordoned || !node.ready;
}

function change(from: string | undefined, to: string | undefined): string {
  return from === to ? (from ?? '-') : `${from ?? 'nothing'} -> ${to ?? 'none'}`;
}

function shortDigest(image: string | undefined): string | undefined {
  return image?.slice(image.indexOf('@') + 1).slice(0, 'sha256:'.length + 12);
}

function ago(time: string, now: number): string {
  return formatDuration(now - Date.parse(time));
}
