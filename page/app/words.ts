import { type NodeStateName, nodeStateNames } from '../../api/node-state.ts';
import { plural } from '../../api/plural.ts';
import { inOneLine } from '../../api/visible-text.ts';
import { duration, stateWord } from '../../view/words.ts';
import type { NodeRow, PageView, PoolRow } from '../model/view.ts';

/** The texts of the page. Pure, and without the browser. */

/** What a cell shows of a node beside its state, each by a mark of its own (style/nodes.css). */
export type Mark = 'not-ready' | 'skipped' | 'blocked' | 'next-boot';

/** Marks as text. */
export const MARK_WORDS: Readonly<Record<Mark, string>> = {
  'not-ready': 'not ready',
  skipped: 'skipped',
  blocked: 'drain blocked',
  'next-boot': 'at next reboot',
};

/** @returns the marks of a node's cell. */
export function marksOf({ state, ready, obstacle, blockedBy, nextBoot }: NodeRow): readonly Mark[] {
  const marks: (Mark | false)[] = [
    // A rebooting node is never ready.
    !ready && state !== 'rebooting' && 'not-ready',
    obstacle !== undefined && 'skipped',
    blockedBy !== undefined && 'blocked',
    nextBoot === true && 'next-boot',
  ];
  return marks.filter((mark) => mark !== false);
}

/** The state of a pool for its color and icon. */
export type PoolTone = 'settled' | 'busy' | 'paused' | 'trouble';

export function toneOf({ state, paused }: Pick<PoolRow, 'state' | 'paused'>): PoolTone {
  if (state === 'Degraded') return 'trouble';
  if (state === 'Updated') return 'settled';
  return paused ? 'paused' : 'busy';
}

/** @returns a node in one line, for screen readers. */
export function formatNodeLine(name: string, node: NodeRow): string {
  return [
    name,
    formatState(node),
    ...(node.ready ? [] : ['not ready']),
    ...(node.cordoned ? ['cordoned'] : []),
    ...(node.obstacle === undefined ? [] : [node.obstacle]),
    ...(node.blockedBy?.[0] === undefined ? [] : [`drain waits for pod ${node.blockedBy[0].pod}`]),
  ].join(', ');
}

/** @returns the state, how much is staged, and whether somebody has to reboot the node. */
export function formatState({
  state,
  staging,
  nextBoot,
}: Pick<NodeRow, 'state' | 'staging' | 'nextBoot'>): string {
  if (state === 'staged' && nextBoot === true) return `${stateWord(state)} for its next reboot`;
  return state !== 'staging' || staging === undefined
    ? stateWord(state)
    : `${stateWord(state)} ${staged(staging)} %`;
}

/** @returns percent. */
export function staged({ bytesDone, bytesTotal }: NonNullable<NodeRow['staging']>): number {
  return bytesTotal === 0 ? 0 : Math.round((100 * bytesDone) / bytesTotal);
}

/**
 * @param connection between the page and its server.
 * @param at formats a time.
 * @returns what the header shows: a page is live only while the cluster answers the server, too.
 */
export function headerState(
  connection: 'connecting' | 'live' | 'lost' | 'refused',
  remarks: PageView['remarks'],
  at: (time: number) => string,
): { readonly kind: 'connecting' | 'live' | 'silent' | 'lost'; readonly text: string } {
  if (connection === 'connecting') return { kind: 'connecting', text: 'Connecting' };
  if (connection !== 'live') return { kind: 'lost', text: 'Reconnecting' };
  const silentSince = Object.values(remarks).find((remark) => remark.silentSince !== undefined)?.silentSince;
  if (silentSince === undefined) return { kind: 'live', text: 'Live' };
  return { kind: 'silent', text: `As of ${at(silentSince)}: the cluster does not respond` };
}

/** @returns the approximate age, so that it doesn't change every second. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 10) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} days ago`;
}

/** @param deadline RFC 3339. @param now ms since the epoch. @returns how long it is until then. */
export function formatLeft(deadline: string, now: number): string {
  const left = Date.parse(deadline) - now;
  return left > 0 ? `${duration(left)} left` : 'no time left';
}

/** @returns a text in one line, with each digest and hash cut to its first digits. */
export function withShortHashes(text: string): string {
  return inOneLine(text).replaceAll(/\b([0-9a-f]{10})[0-9a-f]{14,}\b/g, '$1…');
}

/** @returns a short form of an image: repository and the first digits of the digest. */
export function shortImage(pullspec: string): string {
  const [repository = '', digest] = pullspec.split('@sha256:');
  const name = repository.split('/').slice(-2).join('/');
  return digest === undefined ? name : `${name}@${digest.slice(0, 12)}`;
}

/** Nodes that are named; of more only the number is announced. */
const NAMED = 3;

/**
 * The changes between two views, for screen readers: nodes by their new state, and builds.
 *
 * @returns sentences; empty when nothing needs an announcement.
 */
export function announce(before: PageView, after: PageView): string {
  return [
    ...nodeAnnouncements(before, after),
    ...buildAnnouncements(before, after),
    ...poolAnnouncements(before, after),
  ].join(' ');
}

function nodeAnnouncements(before: PageView, after: PageView): string[] {
  if (before.nodes === after.nodes) return [];
  const came = new Map<NodeStateName, string[]>();
  for (const [name, node] of Object.entries(after.nodes)) {
    const known = before.nodes[name];
    if (known === node || known === undefined || known.state === node.state) continue;
    const names = came.get(node.state) ?? [];
    names.push(name);
    came.set(node.state, names);
  }
  return nodeStateNames.flatMap((state) => {
    const names = came.get(state);
    if (names === undefined) return [];
    const who = names.length <= NAMED ? names.join(', ') : plural(names.length, 'node');
    return [`${who}: ${stateWord(state)}.`];
  });
}

function buildAnnouncements(before: PageView, after: PageView): string[] {
  return Object.entries(after.builds).flatMap(([name, { state }]) =>
    before.builds[name]?.state === state ? [] : [`Build ${name}: ${state.toLowerCase()}.`],
  );
}

function poolAnnouncements(before: PageView, after: PageView): string[] {
  return Object.entries(after.pools).flatMap(([name, pool]) => {
    const known = before.pools[name];
    const tone = toneOf(pool);
    if (known === undefined || toneOf(known) === tone) return [];
    return tone === 'settled' || tone === 'trouble' ? [`Pool ${name}: ${pool.what}.`] : [];
  });
}
