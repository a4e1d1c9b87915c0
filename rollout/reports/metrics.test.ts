import { describe, expect, it } from 'vitest';
import { aState, condition, REBOOT, type StateFields } from '../../test/fixtures/objects.ts';
import { RolloutMetrics } from './metrics.ts';

/** @returns the value of one series, by its name and labels as they are served. */
async function seriesValue(metrics: RolloutMetrics, series: string): Promise<number | undefined> {
  const line = (await metrics.registry.metrics()).split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

async function bucketsOf(metrics: RolloutMetrics, name: string): Promise<number[]> {
  const text = await metrics.registry.metrics();
  return [...text.matchAll(new RegExp(`^${name}_bucket\\{[^}]*le="([0-9.]+)"`, 'gm'))].map(([, le]) =>
    Number(le),
  );
}

describe('the phase of a node', () => {
  it.each<[string, StateFields]>([
    ['updated', {}],
    ['preparing', { progress: { kind: 'preparing' } }],
    ['waiting', { progress: { kind: 'staged', actions: REBOOT } }],
    ['waiting', { assigned: false }],
    ['working', { progress: { kind: 'staged', actions: REBOOT }, lease: { by: 'us' } }],
    ['degraded', { progress: { kind: 'degraded', why: '', since: 0 }, lease: { by: 'us' } }],
    ['away', { away: { kind: 'switched-off', why: '' }, progress: { kind: 'degraded', why: '', since: 0 } }],
  ])('%s', async (phase, more) => {
    const metrics = new RolloutMetrics(() => new Map());
    metrics.setPool('worker', [aState('a', more)], 0, 0);
    expect(await seriesValue(metrics, `shale_operator_nodes{pool="worker",phase="${phase}"}`)).toBe(1);
  });
});

it('a node that is verified is in that state, beside settled ones, and goes with the pool', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  const stage = { kind: 'verifying', condition: condition('UpdatePostActionComplete') } as const;
  metrics.setPool('worker', [aState('a', { progress: { kind: 'staged', actions: REBOOT }, stage })], 5, 0);
  const state = (name: string) =>
    seriesValue(metrics, `shale_operator_node_states{pool="worker",state="${name}"}`);
  expect([await state('verifying'), await state('updated'), await state('staged')]).toEqual([1, 5, 0]);
  metrics.removePool('worker');
  expect(await state('verifying')).toBeUndefined();
});

it('settled nodes are counted as updated', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  metrics.setPool('worker', [aState('a')], 5, 0);
  expect(await seriesValue(metrics, 'shale_operator_nodes{pool="worker",phase="updated"}')).toBe(6);
});

it('what a pool waits for is there while it waits, and goes with the pool', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  const held = (reason: string) =>
    seriesValue(metrics, `shale_operator_updates_held{pool="worker",reason="${reason}"}`);
  metrics.setUpdatesHeld('worker', [{ reason: 'AwaitingPools', message: '' }]);
  expect([await held('AwaitingPools'), await held('Baking')]).toEqual([1, undefined]);
  metrics.setUpdatesHeld('worker', [{ reason: 'Baking', message: '' }]);
  expect([await held('AwaitingPools'), await held('Baking')]).toEqual([undefined, 1]);
  metrics.removePool('worker');
  expect(await held('Baking')).toBeUndefined();
});

it('nodes whose hooks take too long are counted, and go with the pool', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  const series = 'shale_operator_overdue_hooks{pool="worker"}';
  metrics.setOverdueHooks('worker', 2);
  expect(await seriesValue(metrics, series)).toBe(2);
  metrics.removePool('worker');
  expect(await seriesValue(metrics, series)).toBeUndefined();
});

it('signing is reported as disabled while it is', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  for (const disabled of [true, false]) {
    metrics.setSigningDisabled(disabled);
    expect(await seriesValue(metrics, 'shale_operator_image_signing_disabled')).toBe(disabled ? 1 : 0);
  }
});

it('notifications are counted by their result', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  for (const result of ['sent', 'sent', 'dropped'] as const) metrics.countNotification(result);
  const count = (result: string) =>
    seriesValue(metrics, `shale_operator_notifications_total{result="${result}"}`);
  expect([await count('sent'), await count('failed'), await count('dropped')]).toEqual([2, undefined, 1]);
});

// Queries name these bounds: another one breaks the alerts and dashboards of a cluster.
it('durations are counted in buckets from the shortest pass to a drain of four hours', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  metrics.observeDrain(20);
  metrics.observePass('pools', { took: 20, outcome: 'done' });
  expect(await bucketsOf(metrics, 'shale_operator_drain_seconds')).toEqual([
    1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14_400,
  ]);
  expect(await bucketsOf(metrics, 'shale_operator_reconcile_seconds')).toEqual([
    0.005, 0.025, 0.1, 0.5, 1, 5, 30,
  ]);
  expect(await seriesValue(metrics, 'shale_operator_reconcile_seconds_sum{controller="pools"}')).toBe(0.02);
  expect(
    await seriesValue(metrics, 'shale_operator_reconcile_failures_total{controller="pools"}'),
  ).toBeUndefined();
});

it.each<[string, 'setBootImageLag' | 'setNewNodeImageLag', string]>([
  ['the image for new nodes', 'setBootImageLag', 'shale_operator_boot_image_lag'],
  ['what new nodes came with', 'setNewNodeImageLag', 'shale_operator_new_node_image_lag'],
])('how far %s is behind is known while there is one', async (_what, set, name) => {
  const metrics = new RolloutMetrics(() => new Map());
  const series = `${name}{pool="worker"}`;
  metrics[set]('worker', 2);
  expect(await seriesValue(metrics, series)).toBe(2);
  metrics[set]('worker', undefined);
  expect(await seriesValue(metrics, series)).toBeUndefined();
  metrics[set]('worker', 0);
  metrics.removePool('worker');
  expect(await seriesValue(metrics, series)).toBeUndefined();
});

it('new nodes are counted by whether they are overdue, until their pool is gone', async () => {
  const metrics = new RolloutMetrics(() => new Map());
  const waiting = [
    { name: 'a', why: '', overdueAt: 1_000 },
    { name: 'b', why: '', overdueAt: 2_000 },
    { name: 'c', why: '' },
  ];
  metrics.setNewNodes('worker', { admit: [], waiting }, 1_500);
  const value = (overdue: string) =>
    seriesValue(metrics, `shale_operator_new_nodes{pool="worker",overdue="${overdue}"}`);
  expect(await Promise.all([value('true'), value('false')])).toEqual([1, 2]);
  metrics.removePool('worker');
  expect(await Promise.all([value('true'), value('false')])).toEqual([undefined, undefined]);
});
