import { describe, expect, test } from 'vitest';
import { type BuildRow, EMPTY_VIEW, type NodeRow, type PageView, type PoolRow } from '../model/view.ts';
import {
  ago,
  announce,
  formatLeft,
  formatNodeLine,
  headerState,
  shortImage,
  withShortHashes,
} from './words.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test.each([
  [-5 * SECOND, 'just now'],
  [9 * SECOND, 'just now'],
  [47 * SECOND, '40 s ago'],
  [119 * SECOND, '1 min ago'],
  [5 * HOUR, '5 h ago'],
  [100 * HOUR, '4 days ago'],
])('%i ms before now is %s', (ms, words) => {
  expect(ago(1e12 - ms, 1e12)).toBe(words);
});

test.each([
  ['2026-11-20T10:09:00Z', '1 min 30 s left'],
  ['2026-11-20T10:07:00Z', 'no time left'],
])('until %s there is %s', (deadline, text) => {
  expect(formatLeft(deadline, Date.parse('2026-11-20T10:07:30Z'))).toBe(text);
});

test('a text of several lines is in one, with short hashes', () => {
  expect(withShortHashes(`etcd is away\n 2 of 3\n${'0a'.repeat(16)}`)).toBe(
    'etcd is away; 2 of 3; 0a0a0a0a0a…',
  );
});

test('an image is its repository and the first digits of its digest', () => {
  expect(shortImage(`registry.example:5000/os/worker@sha256:${'a1'.repeat(32)}`)).toBe(
    'os/worker@a1a1a1a1a1a1',
  );
  expect(shortImage('quay.io/os:latest')).toBe('quay.io/os:latest');
});

test('hashes and digests are short, and words stay as they are', () => {
  expect(
    withShortHashes(`rendered-worker-${'0a'.repeat(16)} as os@sha256:${'f'.repeat(64)}, defaced facade`),
  ).toBe('rendered-worker-0a0a0a0a0a… as os@sha256:ffffffffff…, defaced facade');
});

const row = (state: NodeRow['state']): NodeRow => ({
  pool: 'worker',
  state,
  config: { desired: 'rendered-worker-1' },
  ready: true,
  cordoned: false,
});

test('the line of a node contains everything that needs attention', () => {
  expect(
    formatNodeLine('w', {
      ...row('staging'),
      staging: { bytesDone: 1, bytesTotal: 4 },
      ready: false,
      cordoned: true,
      obstacle: 'flagged for maintenance',
    }),
  ).toBe('w, staging 25 %, not ready, cordoned, flagged for maintenance');
});

test('the line of a node whose drain waits names the pod', () => {
  const blockedBy = [{ pod: 'shop/web-1', reason: 'PodDisruptionBudget web (allows 0 disruptions)' }];
  expect(formatNodeLine('w', { ...row('draining'), blockedBy })).toBe(
    'w, draining, drain waits for pod shop/web-1',
  );
});

test('the line of a node whose next boot is the target says so', () => {
  expect(formatNodeLine('w', { ...row('staged'), nextBoot: true })).toBe('w, waiting for its next reboot');
});

const clock = (time: number) => new Date(time).toISOString().slice(11, 16);

describe('the header', () => {
  const remarks: PageView['remarks'] = { policies: { text: 'The policies are not in effect' } };
  const silent = { ...remarks, silence: { text: 'The cluster does not respond', silentSince: 12 * HOUR } };

  test.each([
    ['connecting', remarks, 'connecting', 'Connecting'],
    ['live', remarks, 'live', 'Live'],
    ['live', silent, 'silent', 'As of 12:00: the cluster does not respond'],
    ['lost', silent, 'lost', 'Reconnecting'],
  ] as const)('of a page that is %s', (connection, given, kind, text) => {
    expect(headerState(connection, given, clock)).toEqual({ kind, text });
  });
});

const pool: PoolRow = {
  state: 'NodesUpdating',
  what: '1 of 2',
  paused: false,
  maxUnavailable: '1',
  config: '',
  nodes: { total: 2, updated: 1, unavailable: 1, degraded: 0 },
};
const build: BuildRow = { pool: 'worker', config: '', state: 'Building', created: 0, transitions: [] };
const nodes = (states: Readonly<Record<string, NodeRow['state']>>): PageView => ({
  ...EMPTY_VIEW,
  nodes: Object.fromEntries(Object.entries(states).map(([name, state]) => [name, row(state)])),
});

describe('announcements of', () => {
  test.each<[string, PageView, PageView, string]>([
    ['a node by its name', nodes({ a: 'staged' }), nodes({ a: 'rebooting' }), 'a: rebooting.'],
    [
      'what failed first',
      nodes({ a: 'staged', b: 'staged' }),
      nodes({ a: 'updated', b: 'degraded' }),
      'b: failed. a: up to date.',
    ],
    [
      'many nodes by their number',
      nodes({ a: 'staged', b: 'staged', c: 'staged', d: 'staged' }),
      nodes({ a: 'updated', b: 'updated', c: 'updated', d: 'updated' }),
      '4 nodes: up to date.',
    ],
    ['no nodes that are added', nodes({}), nodes({ a: 'staged' }), ''],
    [
      'the end of a build',
      { ...EMPTY_VIEW, builds: { b: build } },
      { ...EMPTY_VIEW, builds: { b: { ...build, state: 'Succeeded' } } },
      'Build b: succeeded.',
    ],
    [
      'the end of a rollout',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, state: 'Updated', what: 'All 2 nodes run it' } } },
      'Pool worker: All 2 nodes run it.',
    ],
    [
      'no change of words alone',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, what: '2 of 2' } } },
      '',
    ],
  ])('is %s', (_, before, after, expected) => {
    expect(announce(before, after)).toBe(expected);
  });
});
