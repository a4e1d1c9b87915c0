/** Which nodes go when, and how many at a time. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': '' };
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal, { pace: { operatorNode: 'plane-0' } });
}, patience(60_000));
afterAll(() => fleet.stop());

const orderOf = (prefix: string) => fleet.order().filter((name) => name.startsWith(prefix));
const momentOf = (time: string | undefined) => Date.parse(time ?? '');

test('of a percentage no more than that, rounded down, are out of service at once', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('percent', { maxUnavailable: '40%' });
  const names = Array.from({ length: 7 }, (_, index) => `percent-${index}`);
  await Promise.all(names.map((name) => fleet.addNode(name, 'percent')));
  const config = await fleet.change('percent', 'next');
  await Promise.all(names.map((name) => fleet.runs(name, config)));
  await fleet.poolSays('percent', 'Updated', /^True/);
  expect(fleet.mostCordoned('percent')).toBe(2);
});

test("control-plane nodes go one at a time, the leader's host last", {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('plane', { maxUnavailable: 3 });
  const names = ['plane-0', 'plane-1', 'plane-2'];
  for (const name of names) await fleet.addNode(name, 'plane', { labels: CONTROL_PLANE });
  const config = await fleet.change('plane', 'next');
  await Promise.all(names.map((name) => fleet.runs(name, config)));
  expect(orderOf('plane-')).toHaveLength(3);
  expect(orderOf('plane-').at(-1)).toBe('plane-0');
  expect(fleet.mostCordoned('plane')).toBe(1);
});

test('a node that joins during a rollout, and one that comes from another pool, take the target too', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('from');
  await fleet.addPool('to');
  await fleet.addNode('from-0', 'from');
  await fleet.addNode('to-0', 'to');
  const config = await fleet.change('to', 'next');
  await fleet.addNode('to-1', 'to', { settled: false });
  await fleet.patchNode('from-0', { metadata: { labels: { pool: 'to' } } });
  for (const name of ['to-0', 'to-1', 'from-0']) await fleet.runs(name, config);
  const moved = await fleet.client.get(MachineConfigNodes, 'from-0', { signal });
  expect(moved.spec.pool.name).toBe('to');
  await fleet.poolSays('from', 'Updated', /^True AllNodesUpdated The pool has no nodes/);
});

test('live updates wait for the canary to hold, and cordon nobody', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('live', { shale: { soak: '3s' } });
  const names = Array.from({ length: 4 }, (_, index) => `live-${index}`);
  for (const name of names) await fleet.addNode(name, 'live', { script: { actions: RESTART } });
  const config = await fleet.change('live', 'next');
  const updated = await Promise.all(names.map((name) => fleet.runs(name, config)));
  // The node that was prepared first is the canary.
  const [canary, second] = updated
    .map(({ status }) => status?.lastUpdate)
    .toSorted((a, b) => momentOf(a?.startedAt) - momentOf(b?.startedAt));
  expect(momentOf(second?.startedAt) - momentOf(canary?.finishedAt)).toBeGreaterThanOrEqual(3_000);
  expect(fleet.mostCordoned('live')).toBe(0);
});

test('a new node waits for no maintenance window and for no other node, and takes pods once it is updated', {
  timeout: patience(60_000),
}, async () => {
  const never = [{ schedule: '0 0 30 2 *', duration: '1h' }];
  await fleet.addPool('fresh');
  await fleet.addNode('fresh-0', 'fresh');
  await fleet.setPool('fresh', { maintenanceWindows: never });
  const config = await fleet.change('fresh', 'next');
  await fleet.poolSays('fresh', 'Updating', /AwaitingMaintenanceWindow/);
  const taints = [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }];
  await fleet.addNode('fresh-1', 'fresh', { taints, settled: false });
  await fleet.runs('fresh-1', config);
  const isFree = ({ spec }: Node) => spec?.taints === undefined && spec?.unschedulable === undefined;
  const { metadata } = await seen(fleet.client, Nodes, 'fresh-1', isFree);
  expect(metadata.annotations?.[annotations.inService]).toBe('true');
  await fleet.eventSays('fresh-1', /^Configured Removed the startup taint/);
  await fleet.poolSays('fresh', 'NewNodesWaiting', /^False NoNewNodes/);
  await fleet.poolSays('fresh', 'Updating', /AwaitingMaintenanceWindow 1 of 2 nodes run/);
});
