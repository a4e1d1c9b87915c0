import { expect, test } from 'vitest';
import type { HoldView } from './schemas.ts';
import { type TimedNode, type TimedUpdate, timeLeft } from './time-left.ts';

const NOW = 1e12;
const MIN = 60_000;
type Pool = Parameters<typeof timeLeft>[0];
const REBOOTS = ['Drain', 'Reboot'];
const LIVE = ['Restart(a.service)'];
const busy: Pool = { state: 'NodesUpdating', paused: false, holds: [] };
const node = (state: TimedNode['state'], more: Partial<TimedNode> = {}): TimedNode => ({
  state,
  planned: REBOOTS,
  last: undefined,
  ...more,
});
/** @param start, @param end minutes before now. */
const update = (start: number, end: number, more: Partial<TimedUpdate> = {}): TimedUpdate => ({
  actions: REBOOTS,
  ofTarget: false,
  config: 'target',
  start: NOW - start * MIN,
  end: NOW - end * MIN,
  result: 'Succeeded',
  ...more,
});
const done = (start: number, end: number) =>
  node('updated', { last: update(start, end, { ofTarget: true }) });
const waiting = (count: number, more: Partial<TimedNode> = {}) =>
  Array.from({ length: count }, () => node('staged', more));

test('the time left is that of the nodes before, per node', () => {
  // Four nodes in ten minutes, the last of them a minute ago.
  const members = [done(11, 6), done(11, 6), done(6, 1), done(6, 1), ...waiting(6)];
  expect(timeLeft(busy, members, NOW)).toEqual({ ms: 14 * MIN, updates: 4, of: 'this' });
});

test('a node that ran the target before it was rolled out again is no part of the pace', () => {
  const members = [done(90_000, 89_000), done(11, 6), done(6, 1), ...waiting(2)];
  expect(timeLeft(busy, members, NOW)).toEqual({ ms: 9 * MIN, updates: 2, of: 'this' });
  const otherSince = node('degraded', { last: update(60, 50, { config: 'other' }) });
  const sameDay = [done(90, 80), otherSince, done(11, 6), done(6, 1), ...waiting(2)];
  expect(timeLeft(busy, sameDay, NOW)).toEqual({ ms: 9 * MIN, updates: 2, of: 'this' });
});

test.each(['RolledBack', 'Failed'] as const)(
  'an update with the result %s is no part of the pace',
  (result) => {
    const restored = node('updated', { last: update(31, 16, { ofTarget: true, result }) });
    const members = [restored, done(11, 6), done(6, 1), ...waiting(2)];
    expect(timeLeft(busy, members, NOW)).toEqual({ ms: 9 * MIN, updates: 2, of: 'this' });
  },
);

test('of the rollout before, too, only the second time counts', () => {
  const at = (start: number, end: number) => node('staged', { last: update(start, end, { config: 'old' }) });
  const members = [at(90_000, 89_000), at(100, 95), at(95, 90)];
  expect(timeLeft(busy, members, NOW)).toEqual({ ms: 15 * MIN, updates: 2, of: 'last' });
});

test('nodes at work are still to come, failed and skipped ones are not waited for', () => {
  const members = [
    done(11, 1),
    node('rebooting'),
    node('staging'),
    node('degraded'),
    node('unmanaged'),
    node('staged', { obstacle: 'new disk' }),
  ];
  expect(timeLeft(busy, members, NOW)?.ms).toBe(19 * MIN);
});

test('only the latest fifty count: a canary goes alone', () => {
  const canary = done(2_000, 1_000);
  const members = [
    canary,
    ...Array.from({ length: 50 }, (_, index) => done(52 - index, 51 - index)),
    ...waiting(10),
  ];
  expect(timeLeft(busy, members, NOW)).toEqual({ ms: 8 * MIN, updates: 50, of: 'this' });
});

test('nodes that take longer than the ones before have no time left', () => {
  expect(timeLeft(busy, [done(60, 55), node('rebooting')], NOW)).toEqual({
    ms: 0,
    updates: 1,
    of: 'this',
  });
});

test('before the first node is done, the rollout before counts, as far as it did the same', () => {
  const earlier = (config: string, start: number, end: number, actions = REBOOTS) => ({
    last: update(start, end, { config, actions }),
  });
  const members = [
    node('draining', { since: new Date(NOW - 2 * MIN).toISOString(), ...earlier('old', 100, 95) }),
    node('staged', earlier('old', 95, 90)),
    node('staged', earlier('older', 900, 800)),
    node('staged', earlier('live', 50, 49, LIVE)),
  ];
  // Two nodes in ten minutes, and the first is at work since two.
  expect(timeLeft(busy, members, NOW)).toEqual({ ms: 18 * MIN, updates: 2, of: 'last' });
});

test('what a node did before it returned from maintenance is no time at work', () => {
  const ago = (minutes: number) => new Date(NOW - minutes * MIN).toISOString();
  const rolledOut = [done(130, 125), done(125, 120)];
  expect(timeLeft(busy, [...rolledOut, node('staged', { since: ago(130) })], NOW)?.ms).toBe(5 * MIN);
  expect(timeLeft(busy, [...rolledOut, node('draining', { since: ago(1) })], NOW)?.ms).toBe(4 * MIN);
  expect(timeLeft(busy, [...rolledOut, node('draining', { since: ago(7) })], NOW)?.ms).toBe(0);
  // One that rebooted since started as the one before ended.
  const rebooting = node('rebooting', { since: ago(1) });
  expect(timeLeft(busy, [done(14, 9), done(9, 4), rebooting], NOW)?.ms).toBe(1 * MIN);
});

const rack = { name: 'failure domain a', unavailable: ['a1'], most: 1 };

test('nodes of one failure domain go one after another, however fast those of many domains went', () => {
  // Four nodes of four racks in five minutes together, the last of them just now, and three of one rack are left.
  const members = [
    ...['a', 'b', 'c', 'd'].map((domain) => ({ ...done(5, 0), domain })),
    ...waiting(3, { domain: 'a', fullDomain: rack }),
  ];
  expect(timeLeft(busy, members, NOW)?.ms).toBe(3.75 * MIN);
  const racks = (limit: number | string) => ({ ...busy, failureDomains: { maxUnavailable: limit } });
  expect(timeLeft(racks(1), members, NOW)?.ms).toBe(15 * MIN);
  expect(timeLeft(racks('50%'), members, NOW)?.ms).toBe(10 * MIN);
  expect(timeLeft(racks(3), members, NOW)?.ms).toBe(5 * MIN);
});

test.each<[string, Pool, readonly TimedNode[]]>([
  ['there is nothing to do', busy, [done(2, 1)]],
  ['no node was ever updated', busy, waiting(3)],
  ['an update that failed', busy, waiting(3, { last: update(9, 8, { result: 'RolledBack' }) })],
  ['the pool is settled', { ...busy, state: 'Updated' }, [done(2, 1), ...waiting(1)]],
  ['the pool is degraded', { ...busy, state: 'Degraded' }, [done(2, 1), ...waiting(1)]],
  [
    'a drain waits for a pod that can not be evicted',
    busy,
    [done(2, 1), node('draining', { blockedBy: [{ pod: 'shop/web-1', reason: 'web allows 0' }] })],
  ],
  [
    'others use up the failure domain of a node',
    busy,
    [done(2, 1), ...waiting(1), node('staged', { fullDomain: { ...rack, byOthers: true } })],
  ],
  [
    'a health check fails',
    busy,
    [done(2, 1), ...waiting(1), node('verifying', { verification: { waitsFor: 'etcd', check: '10-etcd' } })],
  ],
  ...(['paused', 'window-closed', 'stopped', 'unreadable', 'unmanaged', 'waiting'] as const).map(
    (kind): [string, Pool, readonly TimedNode[]] => [
      `the pool is held: ${kind}`,
      { ...busy, holds: [{ kind } satisfies HoldView] },
      [done(2, 1), ...waiting(1)],
    ],
  ),
])('nothing is estimated where %s', (_, pool, members) => {
  expect(timeLeft(pool, members, NOW)).toBeUndefined();
});

test.each<[string, Pool, Partial<TimedNode>, number | undefined]>([
  ['a node whose next boot is the target', busy, { nextBoot: true }, undefined],
  ['one that Cluster API drives', { ...busy, holds: [{ kind: 'cluster-api' }] }, {}, undefined],
  ['one whose reboot is left to others', { ...busy, holds: [{ kind: 'next-reboot' }] }, {}, undefined],
  ['one of these that needs no reboot', { ...busy, holds: [{ kind: 'next-reboot' }] }, { planned: LIVE }, 0],
])('of nodes that somebody else reboots nothing is estimated: %s', (_, pool, more, ms) => {
  expect(timeLeft(pool, [done(2, 1), ...waiting(1, more)], NOW)?.ms).toBe(ms);
});

test('an open window and a rollback hold nothing up', () => {
  const holds: HoldView[] = [
    { kind: 'window-open', until: new Date(NOW).toISOString() },
    { kind: 'rollback' },
  ];
  expect(timeLeft({ ...busy, holds }, [done(2, 1), ...waiting(1)], NOW)).toBeDefined();
});
