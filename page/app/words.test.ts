import { describe, expect, test } from 'vitest';
import { type BuildRow, EMPTY_VIEW, type NodeRow, type PageView, type PoolRow } from '../model/view.ts';
import { ago, announce, duration, formatNodeLine, shortImage, withShortHashes } from './words.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test.each([
  [0, '0 s'],
  [42 * SECOND, '42 s'],
  [3 * MINUTE, '3 min'],
  [3 * MINUTE + 5 * SECOND, '3 min 5 s'],
  [2 * HOUR + 10 * MINUTE, '2 h 10 min'],
  [72 * HOUR, '3 days'],
])('%i ms are %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

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

test('the line of a node contains everything that needs attention', () => {
  expect(
    formatNodeLine('w', {
      pool: 'worker',
      state: 'preparing',
      staging: { done: 1, total: 4 },
      ready: false,
      cordoned: true,
      maintenance: 'flagged for maintenance',
    }),
  ).toBe('w, staging 25 %, not ready, cordoned, flagged for maintenance');
});

const node = (state: NodeRow['state']): NodeRow => ({ pool: 'worker', state, ready: true });
const pool: PoolRow = {
  tone: 'busy',
  headline: '1 of 2',
  holds: [],
  paused: false,
  maxUnavailable: '1',
  config: '',
  machines: 2,
  updated: 1,
  unavailable: 1,
  degraded: 0,
};
const build: BuildRow = { pool: 'worker', config: '', state: 'building', created: 0, transitions: [] };
const nodes = (states: Readonly<Record<string, NodeRow['state']>>): PageView => ({
  ...EMPTY_VIEW,
  nodes: Object.fromEntries(Object.entries(states).map(([name, state]) => [name, node(state)])),
});

describe('announcements of', () => {
  test.each<[string, PageView, PageView, string]>([
    ['a node by its name', nodes({ a: 'waiting' }), nodes({ a: 'rebooting' }), 'a: rebooting.'],
    [
      'what failed first',
      nodes({ a: 'waiting', b: 'waiting' }),
      nodes({ a: 'updated', b: 'degraded' }),
      'b: failed. a: up to date.',
    ],
    [
      'many nodes by their number',
      nodes({ a: 'waiting', b: 'waiting', c: 'waiting', d: 'waiting' }),
      nodes({ a: 'updated', b: 'updated', c: 'updated', d: 'updated' }),
      '4 nodes: up to date.',
    ],
    ['no nodes that are added', nodes({}), nodes({ a: 'waiting' }), ''],
    [
      'the end of a build',
      { ...EMPTY_VIEW, builds: { b: build } },
      { ...EMPTY_VIEW, builds: { b: { ...build, state: 'succeeded' } } },
      'Build b: succeeded.',
    ],
    [
      'the end of a rollout',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, tone: 'settled', headline: 'All 2 nodes run it' } } },
      'Pool worker: All 2 nodes run it.',
    ],
    [
      'no change of words alone',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, headline: '2 of 2' } } },
      '',
    ],
  ])('is %s', (_, before, after, expected) => {
    expect(announce(before, after)).toBe(expected);
  });
});
