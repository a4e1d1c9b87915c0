/** An admin's settings of drains, and what is reported about a drain that does not end. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigMaps, Nodes, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type OperatorTelemetry, startOperatorTelemetry } from '../../operator/status.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { blockDrain, podOn } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const inDefault = { namespace: 'default', signal };
const TEST_MS = { timeout: patience(90_000) };
let fleet: FleetUnderTest;
let telemetry: OperatorTelemetry;
beforeAll(async () => {
  telemetry = await startOperatorTelemetry(0, '127.0.0.1');
  const drain = {
    reportAfterSeconds: 1,
    retrySeconds: { min: 0.05, max: 0.5 },
    gracePeriodSeconds: 7,
    evictUnmanagedPods: false,
    evictEmptyDirPods: false,
  };
  fleet = await startFleetUnderTest(signal, { drain }, { telemetry });
  // In a cluster of one node nothing is drained.
  await fleet.addPool('elsewhere');
  await fleet.addNode('elsewhere-0', 'elsewhere');
}, patience(60_000));
afterAll(async () => {
  await fleet.stop();
  await telemetry.close();
});

/** @returns metadata of a pod that a controller would create again. */
async function managed() {
  const where = { ...inDefault };
  const present = await fleet.client.find(ConfigMaps, 'controller', where);
  const { metadata } =
    present ??
    (await fleet.client.create(
      ConfigMaps,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'controller' } },
      where,
    ));
  const owner = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: 'controller',
    uid: metadata.uid ?? '',
    controller: true,
  };
  return { ownerReferences: [owner] };
}

const change = async (pool: string) => {
  await fleet.addPool(pool);
  await fleet.addNode(`${pool}-0`, pool);
  return () => fleet.change(pool, 'next');
};

test('pods have the time to end that the admin gives them, and are waited for', TEST_MS, async () => {
  const begin = await change('grace');
  const pod = podOn('grace-0', 'slow', await managed());
  const spec = { ...pod.spec, terminationGracePeriodSeconds: 3600 };
  await fleet.client.create(Pods, { ...pod, spec }, inDefault);
  const config = await begin();
  await fleet.poolSays('grace', 'Updating', /1 pod still terminating: default\/slow/);
  const { metadata } = await fleet.client.get(Pods, 'slow', inDefault);
  expect(metadata).toMatchObject({ deletionGracePeriodSeconds: 7 });
  const { spec: wanted } = await fleet.client.get(MachineConfigNodes, 'grace-0', { signal });
  expect(wanted.grant).toBeUndefined();
  // What the kubelet does when the pod has ended.
  await fleet.client.delete(Pods, 'slow', { ...inDefault, gracePeriodSeconds: 0 });
  await fleet.runs('grace-0', config);
});

test.each([
  ['without a controller', 'unmanaged', async () => podOn('unmanaged-0', 'alone'), 'alone'],
  [
    'with an emptyDir',
    'scratch',
    async () => {
      const pod = podOn('scratch-0', 'scratch', await managed());
      return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'tmp', emptyDir: {} }] } };
    },
    'scratch',
  ],
])(
  'a pod %s holds a drain up until somebody has seen to it, where the admin says so',
  TEST_MS,
  async (_what, pool, make, name) => {
    const begin = await change(pool);
    await fleet.client.create(Pods, await make(), inDefault);
    const config = await begin();
    await fleet.poolSays(pool, 'Updating', new RegExp(`pod default/${name} can't be evicted: `));
    expect((await fleet.client.get(Pods, name, inDefault)).metadata.deletionTimestamp).toBeUndefined();
    await fleet.client.delete(Pods, name, { ...inDefault, gracePeriodSeconds: 0 });
    await fleet.runs(`${pool}-0`, config);
  },
);

test(
  'a drain that takes too long is an event with pod and budget, and a metric, and goes on',
  TEST_MS,
  async () => {
    const begin = await change('stuck');
    await blockDrain(fleet.client, 'stuck-0', signal, await managed());
    const config = await begin();
    const blocked =
      /^DrainBlocked Node stuck-0 .*default\/held-stuck-0 can't be evicted: PodDisruptionBudget held-stuck-0/;
    await fleet.eventSays('stuck-0', blocked);
    expect(await metric('shale_operator_stuck_drains{pool="stuck"}')).toBe('1');
    await fleet.client.delete(PodDisruptionBudgets, 'held-stuck-0', inDefault);
    await fleet.client.delete(Pods, 'held-stuck-0', { ...inDefault, gracePeriodSeconds: 0 });
    await fleet.runs('stuck-0', config);
    await fleet.poolSays('stuck', 'Updated', /^True/);
    expect(await metric('shale_operator_stuck_drains{pool="stuck"}')).toBe('0');
    expect((await fleet.client.get(Nodes, 'stuck-0', { signal })).spec?.unschedulable).toBeUndefined();
  },
);

async function metric(name: string): Promise<string | undefined> {
  const answer = await fetch(`http://127.0.0.1:${telemetry.port}/metrics`, { signal });
  const line = (await answer.text()).split('\n').find((text) => text.startsWith(`${name} `));
  return line?.slice(name.length + 1);
}
