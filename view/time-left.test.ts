import { expect, test } from 'vitest';
import type { HoldRow, LastUpdate, NodeRow, PlanRow, PoolRow, Table } from '../page/model/view.ts';
import { timeLeft } from './time-left.ts';

const NOW = 1e12;
const MIN = 60_000;
const plans: Table<PlanRow> = {
  reboot: { actions: ['Drain', 'Reboot'], causes: [], source: '' },
  live: { actions: ['Restart(a.service)'], causes: [], source: '' },
};
const busy: Pick<PoolRow, 'tone' | 'holds'> = { tone: 'busy', holds: [] };
const node = (state: NodeRow['state'], more: Partial<NodeRow> = {}): NodeRow => ({
  pool: 'worker',
  state,
  ready: true,
  plan: 'reboot',
  ...more,
});
/** @param start, @param end minutes before now. */
const update = (start: number, end: number, more: Partial<LastUpdate> = {}): LastUpdate => ({
  plan: 'reboot',
  config: 'target',
  start: NOW - start * MIN,
  end: NOW - end * MIN,
  result: 'Succeeded',
  ...more,
});
const done = (start: number, end: number) =>
  node('updated', { last: update(start, end, { ofTarget: true }) });
const waiting = (count: number, more: Partial<NodeRow> = {}) =>
  Array.from({ length: count }, () => node('waiting', more));

test('the time left is that of the nodes before, per node', () => {
  // Four nodes in ten minutes, the last of them a minute ago.
  const members = [done(11, 6), done(11, 6), done(6, 1), done(6, 1), ...waiting(6)];
  expect(timeLeft(busy, members, plans, NOW)).toEqual({ ms: 14 * MIN, updates: 4, of: 'this' });
});

test('nodes at work are still to come, failed and skipped ones are not waited for', () => {
  const members = [
    done(11, 1),
    node('rebooting'),
    node('preparing'),
    node('degraded'),
    node('unmanaged'),
    node('waiting', { maintenance: 'new disk' }),
  ];
  expect(timeLeft(busy, members, plans, NOW)?.ms).toBe(19 * MIN);
});

test('only the latest fifty count: a canary goes alone', () => {
  const canary = done(2_000, 1_000);
  const members = [
    canary,
    ...Array.from({ length: 50 }, (_, index) => done(52 - index, 51 - index)),
    ...waiting(10),
  ];
  expect(timeLeft(busy, members, plans, NOW)).toEqual({ ms: 8 * MIN, updates: 50, of: 'this' });
});

test('nodes that take longer than the ones before have no time left', () => {
  expect(timeLeft(busy, [done(60, 55), node('rebooting')], plans, NOW)).toEqual({
    ms: 0,
    updates: 1,
    of: 'this',
  });
});

test('before the first node is done, the rollout before counts, as far as it did the same', () => {
  const earlier = (config: string, start: number, end: number, plan = 'reboot') => ({
    last: update(start, end, { config, plan }),
  });
  const members = [
    node('draining', { since: NOW - 2 * MIN, ...earlier('old', 100, 95) }),
    node('waiting', earlier('old', 95, 90)),
    node('waiting', earlier('older', 900, 800)),
    node('waiting', earlier('live', 50, 49, 'live')),
  ];
  // Two nodes in ten minutes, and the first is at work since two.
  expect(timeLeft(busy, members, plans, NOW)).toEqual({ ms: 18 * MIN, updates: 2, of: 'last' });
});

test.each<[string, Pick<PoolRow, 'tone' | 'holds'>, readonly NodeRow[]]>([
  ['there is nothing to do', busy, [done(2, 1)]],
  ['no node was ever updated', busy, waiting(3)],
  ['an update that failed', busy, waiting(3, { last: update(9, 8, { result: 'RolledBack' }) })],
  ['the pool is settled', { ...busy, tone: 'settled' }, [done(2, 1), ...waiting(1)]],
  ['the pool is degraded', { ...busy, tone: 'trouble' }, [done(2, 1), ...waiting(1)]],
  ...(['paused', 'window-closed', 'stopped', 'unreadable', 'unmanaged', 'waiting'] as const).map(
    (kind): [string, Pick<PoolRow, 'tone' | 'holds'>, readonly NodeRow[]] => [
      `the pool is held: ${kind}`,
      { ...busy, holds: [{ kind } satisfies HoldRow] },
      [done(2, 1), ...waiting(1)],
    ],
  ),
])('nothing is estimated where %s', (_, pool, members) => {
  expect(timeLeft(pool, members, plans, NOW)).toBeUndefined();
});

test.each<[string, Pick<PoolRow, 'tone' | 'holds'>, Partial<NodeRow>, number | undefined]>([
  ['a node whose next boot is the target', busy, { armed: true }, undefined],
  ['one whose reboot is left to others', { ...busy, holds: [{ kind: 'next-reboot' }] }, {}, undefined],
  ['one of these that needs no reboot', { ...busy, holds: [{ kind: 'next-reboot' }] }, { plan: 'live' }, 0],
])('of nodes that somebody else reboots nothing is estimated: %s', (_, pool, more, ms) => {
  expect(timeLeft(pool, [done(2, 1), ...waiting(1, more)], plans, NOW)?.ms).toBe(ms);
});

test('an open window and a rollback hold nothing up', () => {
  const holds: HoldRow[] = [{ kind: 'window-open', until: NOW }, { kind: 'rollback' }];
  expect(timeLeft({ tone: 'busy', holds }, [done(2, 1), ...waiting(1)], plans, NOW)).toBeDefined();
});
