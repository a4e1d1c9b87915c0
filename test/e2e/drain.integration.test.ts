/** How a node is drained before a disruptive update, and what is reported about it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonSets, Leases, Nodes, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { blockDrain, podOn } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const inDefault = { namespace: 'default', signal };
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal, {
    drain: { reportAfterSeconds: 1, retrySeconds: { min: 0.05, max: 0.5 } },
  });
  // In a cluster of one node nothing is drained.
  await fleet.addPool('elsewhere');
  await fleet.addNode('elsewhere-0', 'elsewhere');
}, patience(60_000));
afterAll(() => fleet.stop());

const daemonSet = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
});

test('a drain that a budget blocks is reported on the node and the pool with pod and budget, and continues when it may', {
  timeout: patience(60_000),
}, async () => {
  const { client } = fleet;
  await fleet.addPool('budget');
  await fleet.addNode('budget-0', 'budget');
  await blockDrain(client, 'budget-0', signal);
  const config = await fleet.change('budget', 'next');
  const blocked = /default\/held-budget-0 can't be evicted: PodDisruptionBudget held-budget-0/;
  const said = (
    type: string,
    object: { status?: { conditions?: readonly { type: string; message: string }[] } },
  ) => object.status?.conditions?.find((condition) => condition.type === type)?.message ?? '';
  const node = await seen(client, MachineConfigNodes, 'budget-0', (object) =>
    blocked.test(said('Drained', object)),
  );
  expect(said('Cordoned', node)).toBe(
    `Cordoned by shale-operator, which holds the Lease medik8s-leases/node-budget-0, to update the node to ${config}`,
  );
  const lease = await client.get(Leases, 'node-budget-0', { namespace: DEFAULT_LEASE_NAMESPACE, signal });
  expect(lease.metadata.annotations?.[annotations.leaseReason]).toBe(`shale-operator: update to ${config}`);
  await fleet.poolSays('budget', 'Updating', blocked);
  await fleet.poolSays('budget', 'Degraded', blocked);
  await client.delete(PodDisruptionBudgets, 'held-budget-0', inDefault);
  const done = await fleet.runs('budget-0', config);
  expect(done.status?.conditions?.map(({ type }) => type)).not.toContain('Drained');
  expect(await client.find(Pods, 'held-budget-0', inDefault)).toBeUndefined();
  await fleet.poolSays('budget', 'Degraded', /^False/);
});

test('a pod that ends no more on a node that is down holds up nothing', {
  timeout: patience(60_000),
}, async () => {
  const { client } = fleet;
  await fleet.addPool('dead');
  await fleet.addNode('dead-0', 'dead');
  await client.create(Pods, podOn('dead-0', 'stuck', { finalizers: ['test/keep'] }), inDefault);
  await client.delete(Pods, 'stuck', { ...inDefault, gracePeriodSeconds: 0 });
  await fleet.setReady('dead-0', false);
  const config = await fleet.change('dead', 'next');
  await seen(client, MachineConfigNodes, 'dead-0', ({ status }) => status?.configVersion?.current === config);
  expect(await client.find(Pods, 'stuck', inDefault)).toBeDefined();
});

test('a node that somebody had cordoned before stays so, and DaemonSet and mirror pods stay on it', {
  timeout: patience(60_000),
}, async () => {
  const { client } = fleet;
  await fleet.addPool('cordoned', { shale: { updateCordoned: true } });
  await fleet.addNode('cordoned-0', 'cordoned');
  await fleet.patchNode('cordoned-0', { spec: { unschedulable: true } });
  const { metadata } = await client.create(DaemonSets, daemonSet('d'), inDefault);
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    name: 'd',
    uid: metadata.uid ?? '',
    controller: true,
  };
  await client.create(Pods, podOn('cordoned-0', 'of-daemonset', { ownerReferences: [owner] }), inDefault);
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
  await client.create(Pods, podOn('cordoned-0', 'mirror', mirror), inDefault);
  await client.create(Pods, podOn('cordoned-0', 'plain'), inDefault);
  const config = await fleet.change('cordoned', 'next');
  await fleet.runs('cordoned-0', config);
  const node = await seen(
    client,
    Nodes,
    'cordoned-0',
    ({ metadata }) => metadata.annotations?.[annotations.cordonedByShale] === undefined,
  );
  expect(node.spec?.unschedulable).toBe(true);
  const { items } = await client.list(Pods, { ...inDefault, fieldSelector: 'spec.nodeName=cordoned-0' });
  expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['mirror', 'of-daemonset']);
});
