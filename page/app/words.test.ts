import { describe, expect, test } from 'vitest';
import type { HoldView } from '../../view/schemas.ts';
import type { TimeLeft } from '../../view/time-left.ts';
import { type BuildRow, EMPTY_VIEW, type NodeRow, type PageView, type PoolRow } from '../model/view.ts';
import {
  ago,
  announce,
  duration,
  formatHold,
  formatNodeLine,
  formatTimeLeft,
  headerState,
  shortImage,
  withShortHashes,
} from './words.ts';

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
const at = (hour: number) => new Date(hour * HOUR).toISOString();

test.each<[HoldView, string]>([
  [{ kind: 'paused' }, 'Paused'],
  [{ kind: 'paused', since: at(12) }, 'Paused since 12:00'],
  [{ kind: 'rollback', by: 'ops', since: at(12), reason: 'slow' }, 'Rolled back by ops since 12:00: slow'],
  [{ kind: 'rollback' }, 'Rolled back'],
  [{ kind: 'window-closed', until: at(22), reason: '0 22 * * *' }, 'Window closed, opens 22:00'],
  [{ kind: 'window-closed' }, 'No window ever opens'],
  [{ kind: 'window-open', until: at(23), reason: '0 22 * * *' }, 'Window open until 23:00'],
  [{ kind: 'window-open' }, 'Window open'],
  [{ kind: 'stopped', since: at(12) }, 'Stopped by failed nodes since 12:00'],
  [{ kind: 'unreadable' }, "Stopped by a setting that can't be read"],
  [{ kind: 'unmanaged' }, 'Not managed'],
  [
    { kind: 'waiting', since: at(12), reason: 'pool canary bakes' },
    'Updates wait since 12:00: pool canary bakes',
  ],
  [{ kind: 'next-reboot' }, 'Updates apply at the next reboot'],
  [{ kind: 'tried', since: at(12), reason: 'a is undone' }, 'A change is tried since 12:00: a is undone'],
  [
    { kind: 'maintenance', by: 'ops', since: at(1), until: at(22), reason: 'new disk' },
    'In maintenance by ops until 22:00: new disk',
  ],
  [{ kind: 'powered-off', by: 'ops', since: at(12) }, 'Powered off by ops since 12:00'],
  [{ kind: 'deleting', reason: 'the node is being deleted' }, 'Going away: the node is being deleted'],
  [{ kind: 'lease', by: 'nhc', until: at(13) }, 'Lease held by nhc until 13:00'],
])('%j is a badge', (hold, text) => {
  expect(formatHold(hold, clock)).toBe(text);
});

test.each<[TimeLeft, string]>([
  [{ ms: 20 * SECOND, updates: 1, of: 'this' }, 'about 1 min left, at the pace of the last node'],
  [{ ms: 12.4 * MINUTE, updates: 50, of: 'this' }, 'about 12 min left, at the pace of the last 50 nodes'],
  [{ ms: 43 * MINUTE, updates: 3, of: 'last' }, 'about 45 min left, at the pace of the rollout before'],
  [{ ms: 83 * MINUTE, updates: 3, of: 'last' }, 'about 1 h 20 min left, at the pace of the rollout before'],
  [{ ms: 0, updates: 2, of: 'this' }, 'taking longer than the last 2 nodes'],
  [{ ms: 0, updates: 2, of: 'last' }, 'taking longer than the rollout before'],
])('%j is the time left', (left, text) => {
  const { text: shown, basis } = formatTimeLeft(left);
  expect(`${shown}${basis}`).toBe(text);
});

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
