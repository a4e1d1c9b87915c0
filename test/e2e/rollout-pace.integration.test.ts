/** What happens at once, what one by one, and what stops it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Nodes, PodDisruptionBudgets } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { blockDrain } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(120_000) };
const HOUR = 3_600_000;
let fleet: FleetUnderTest;
let skippedMs = 0;
beforeAll(async () => {
  fleet = await startFleetUnderTest(
    signal,
    { pace: { stagingLimit: 2 } },
    { now: () => Date.now() + skippedMs },
  );
  // In a cluster of one node nothing is drained.
  await fleet.addPool('elsewhere');
  await fleet.addNode('elsewhere-0', 'elsewhere');
}, patience(60_000));
afterAll(() => fleet.stop());

const mcnOf = (name: string) => fleet.client.get(MachineConfigNodes, name, { signal });
const isStaged =
  (config: string) =>
  ({ status }: MachineConfigNode): boolean =>
    status?.plan?.config === config && status.plan.staged;

/** A window that is never open while the test runs: nodes stage and wait. */
const CLOSED = {
  maintenanceWindows: [{ schedule: `0 ${(new Date().getUTCHours() + 12) % 24} * * *`, duration: '1h' }],
};

/** Lets a pool begin once all of its nodes could: who is prepared first is chance. */
async function openWhenStaged(pool: string, names: readonly string[], config: string): Promise<void> {
  for (const name of names) await seen(fleet.client, MachineConfigNodes, name, isStaged(config));
  await fleet.setPool(pool, { maintenanceWindows: null });
}

test(
  'every node stages, as many at once as may, while none is disturbed; then they go one by one',
  TEST_MS,
  async () => {
    await fleet.addPool('staged');
    const names = ['staged-0', 'staged-1', 'staged-2', 'staged-3'];
    for (const name of names) await fleet.addNode(name, 'staged', { script: { waitsBefore: 'staging' } });
    const config = await fleet.change('staged', 'next');
    const wants = async () => {
      const all = await Promise.all(names.map(mcnOf));
      return all
        .filter(({ spec }) => spec.configVersion.desired === config)
        .map(({ spec }) => spec.node.name);
    };
    await expect.poll(wants, { timeout: patience(60_000) }).toEqual(['staged-0', 'staged-1']);
    // Those that have staged make room for the next, and wait themselves.
    for (const name of names) fleet.script(name, { waitsBefore: 'acting' });
    for (const name of names) await seen(fleet.client, MachineConfigNodes, name, isStaged(config));
    const granted = async () =>
      (await Promise.all(names.map(mcnOf))).filter(({ spec }) => spec.grant !== undefined).length;
    await expect.poll(granted, { timeout: patience(60_000) }).toBe(1);
    for (const name of names) fleet.script(name, {});
    for (const name of names) await fleet.runs(name, config);
    expect(fleet.mostCordoned('staged')).toBe(1);
  },
);

test('nodes go zone by zone, and within a zone the oldest first', TEST_MS, async () => {
  await fleet.addPool('zones');
  const zones = { 'zones-0': 'b', 'zones-1': 'a', 'zones-2': 'b', 'zones-3': 'a' };
  for (const [name, zone] of Object.entries(zones))
    await fleet.addNode(name, 'zones', { labels: { 'topology.kubernetes.io/zone': zone } });
  await fleet.setPool('zones', CLOSED);
  const config = await fleet.change('zones', 'next');
  await openWhenStaged('zones', Object.keys(zones), config);
  for (const name of Object.keys(zones)) await fleet.runs(name, config);
  const order = fleet.order().filter((name) => name.startsWith('zones-'));
  expect(order).toEqual(['zones-1', 'zones-3', 'zones-0', 'zones-2']);
});

test(
  'live updates go in waves of which none is more than has proven it, and two that fail stop them',
  TEST_MS,
  async () => {
    await fleet.addPool('waves', { shale: { soak: '1s' } });
    const names = Array.from({ length: 9 }, (_, index) => `waves-${index}`);
    for (const name of names) await fleet.addNode(name, 'waves', { script: { actions: RESTART } });
    const held = ['waves-3', 'waves-4', 'waves-5', 'waves-6'];
    for (const name of held) fleet.script(name, { actions: RESTART, waitsBefore: 'acting' });
    await fleet.setPool('waves', CLOSED);
    const config = await fleet.change('waves', 'next');
    await openWhenStaged('waves', names, config);
    for (const name of ['waves-0', 'waves-1', 'waves-2']) await fleet.runs(name, config);
    // Three have proven it, so four are at it.
    for (const name of held)
      await seen(fleet.client, MachineConfigNodes, name, ({ spec }) => spec.grant !== undefined);
    const updates = await Promise.all(names.slice(0, 3).map(mcnOf));
    const [first, ...wave] = updates.map(({ status }) => status?.lastUpdate);
    for (const update of wave)
      expect(
        Date.parse(update?.startedAt ?? '') - Date.parse(first?.finishedAt ?? ''),
      ).toBeGreaterThanOrEqual(1_000);
    for (const name of held) fleet.script(name, { actions: RESTART, fails: 'unit does not start' });
    await fleet.poolSays(
      'waves',
      'Updating',
      /^False RolloutStopped .*nodes failed and the threshold is 2: waves-3/,
    );
    for (const name of ['waves-7', 'waves-8']) {
      const { spec, status } = await mcnOf(name);
      expect(spec.grant).toBeUndefined();
      expect(status?.configVersion?.current).not.toBe(config);
    }
  },
);

test('a node that is down for other reasons takes one of maxUnavailable', TEST_MS, async () => {
  await fleet.addPool('down');
  for (const name of ['down-0', 'down-1']) await fleet.addNode(name, 'down');
  await fleet.setReady('down-1', false);
  fleet.script('down-1', { waitsBefore: 'staging' });
  const config = await fleet.change('down', 'next');
  await fleet.poolSays('down', 'Updating', /^True MaxUnavailableReached .*down-1: unavailable: not Ready/);
  expect((await fleet.client.get(Nodes, 'down-0', { signal })).spec?.unschedulable).toBeUndefined();
  await fleet.setReady('down-1', true);
  fleet.script('down-1', {});
  for (const name of ['down-0', 'down-1']) await fleet.runs(name, config);
});

test('a node that is deleted in the middle of its update makes room for the next', TEST_MS, async () => {
  await fleet.addPool('deleted');
  for (const name of ['deleted-0', 'deleted-1']) await fleet.addNode(name, 'deleted');
  fleet.script('deleted-0', { waitsBefore: 'acting' });
  fleet.script('deleted-1', { waitsBefore: 'staging' });
  const config = await fleet.change('deleted', 'next');
  await seen(fleet.client, MachineConfigNodes, 'deleted-0', ({ spec }) => spec.grant !== undefined);
  fleet.script('deleted-1', {});
  await fleet.client.delete(Nodes, 'deleted-0', { signal });
  await fleet.runs('deleted-1', config);
  const { status } = await fleet.poolSays(
    'deleted',
    'Updated',
    /^True AllNodesUpdated The pool's only node runs/,
  );
  expect(status?.machineCount).toBe(1);
});

test('when a maintenance window closes, what has begun ends and nothing more begins', TEST_MS, async () => {
  const opened = new Date();
  const schedule = `${opened.getUTCMinutes()} ${opened.getUTCHours()} * * *`;
  const maintenanceWindows = [{ schedule, duration: '1h', timeZone: 'UTC' }];
  await fleet.addPool('window', { shale: { maintenanceWindows } });
  for (const name of ['window-0', 'window-1']) await fleet.addNode(name, 'window');
  await blockDrain(fleet.client, 'window-0', signal);
  fleet.script('window-1', { waitsBefore: 'staging' });
  const config = await fleet.change('window', 'next');
  await fleet.poolSays('window', 'Updating', /can't be evicted/);
  fleet.script('window-1', {});
  skippedMs = 2 * HOUR;
  await fleet.client.delete(PodDisruptionBudgets, 'held-window-0', { namespace: 'default', signal });
  await fleet.runs('window-0', config);
  await fleet.poolSays('window', 'Updating', /^True AwaitingMaintenanceWindow 1 of 2/);
  expect((await mcnOf('window-1')).spec.grant).toBeUndefined();
  skippedMs = 24 * HOUR;
  await fleet.annotatePool('window', { nudged: 'true' });
  await fleet.runs('window-1', config);
  skippedMs = 0;
});
