/** Two operators, of which one leads, in processes of their own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lease, Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { createCutLine } from '../fixtures/cut-line.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type ClusterUnderTest, NAMESPACE, seen } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';
import { startOperatorProcess } from './operator-process.ts';

const MINUTE = 60_000;
const signal = deadline(5 * MINUTE);
const LEADER = { namespace: NAMESPACE, signal };
interface Operator extends Awaited<ReturnType<typeof startOperatorProcess>> {
  readonly port: number;
}
let fleet: FleetUnderTest;
let dir: string;
const running: Operator[] = [];

beforeAll(async () => {
  fleet = await startFleetUnderTest(signal, {}, { operator: false });
  dir = await mkdtemp(path.join(tmpdir(), 'shale-failover-'));
}, patience(MINUTE));
afterAll(async () => {
  for (const { operator } of running) operator.kill('SIGKILL');
  await Promise.all(running.map(({ operator }) => operator));
  await fleet.stop();
  await rm(dir, { recursive: true });
});

/** @param url of the API server, if it is not the cluster's own. */
async function startOperator(name: string, url?: string): Promise<Operator> {
  const port = await freePort();
  const args = ['--image', 'shale:test', '--metrics-port', String(port)];
  const access: ClusterUnderTest['access'] = async (account) => ({
    ...(await fleet.cluster.access(account)),
    ...present({ url }),
  });
  const cluster = { ...fleet.cluster, access };
  const started = await startOperatorProcess(cluster, dir, { name, args, limitMs: 4 * MINUTE });
  running.push({ ...started, port });
  return { ...started, port };
}

/** @returns the status of an answer; 0 where nobody answers. */
async function ask({ port }: Operator, at: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${at}`, { signal }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.status ?? 0;
}

const leader = async () => (await fleet.client.find(Leases, 'shale-operator', LEADER))?.spec?.holderIdentity;
const leads = (name: string) => expect.poll(leader, { timeout: patience(MINUTE), interval: 100 }).toBe(name);
const nodeLease = (): Promise<Lease> =>
  fleet.client.get(Leases, 'node-two-0', { namespace: DEFAULT_LEASE_NAMESPACE, signal });

test('when the leader is killed the other goes on where it was, and the node stays leased all the while', {
  timeout: patience(3 * MINUTE),
}, async () => {
  const first = await startOperator('operator-a');
  await leads('operator-a');
  await expect.poll(() => ask(first, '/readyz'), { timeout: patience(MINUTE) }).toBe(200);
  const second = await startOperator('operator-b');
  await fleet.addPool('two');
  await fleet.addNode('two-0', 'two', { script: { waitsBefore: 'acting' } });
  const config = await fleet.change('two', 'next');
  await seen(fleet.client, MachineConfigNodes, 'two-0', ({ spec }) => spec.grant !== undefined);
  const before = await nodeLease();
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    await expect.poll(() => ask(second, path), { timeout: patience(MINUTE) }).toBe(200);
  }
  expect(await leader()).toBe('operator-a');
  const forKarpenter = async () =>
    (await fleet.client.get(Nodes, 'two-0', { signal })).metadata.annotations?.[
      'karpenter.sh/do-not-disrupt'
    ];
  expect(await forKarpenter()).toBe('true');

  first.operator.kill('SIGKILL');
  await leads('operator-b');
  const after = await nodeLease();
  expect(after.spec).toMatchObject({
    holderIdentity: 'shale-operator',
    acquireTime: before.spec?.acquireTime,
    leaseTransitions: 0,
  });
  fleet.script('two-0', {});
  await fleet.runs('two-0', config, MINUTE);
  await fleet.poolSays('two', 'Updated', /^True/);
  await expect.poll(forKarpenter, { timeout: patience(MINUTE) }).toBeUndefined();
  expect(fleet.order()).toEqual(['two-0']);
});

test('a leader that loses its lease gives way, stays, and leads again when it is free', {
  timeout: patience(2 * MINUTE),
}, async () => {
  const [, second] = running;
  if (second === undefined) throw new Error('there is no second operator');
  const now = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: 'another', acquireTime: now, renewTime: now, leaseDurationSeconds: 3600 };
  await fleet.client.patch(Leases, 'shale-operator', { type: 'merge', body: { spec } }, LEADER);
  await expect.poll(() => ask(second, '/readyz'), { timeout: patience(MINUTE) }).toBe(200);
  expect(await leader()).toBe('another');
  await fleet.client.delete(Leases, 'shale-operator', LEADER);
  await leads('operator-b');
  const config = await fleet.change('two', 'later');
  await fleet.runs('two-0', config, MINUTE);
  expect(await ask(second, '/healthz')).toBe(200);
});

test('an operator outlasts an API server that is away, when it starts and while it leads', {
  timeout: patience(2 * MINUTE),
}, async () => {
  for (const { operator } of running) operator.kill('SIGTERM');
  await Promise.all(running.map(({ operator }) => operator));
  await using line = await createCutLine((await fleet.cluster.access('shale-operator')).url);
  line.cut();
  const started = await startOperator('operator-c', line.url);
  let logged = '';
  started.operator.stderr?.on('data', (chunk: Buffer) => {
    logged += chunk.toString();
  });
  const logs = (message: string, times: number) =>
    expect
      .poll(() => logged.split(`"msg":"${message}"`).length - 1, { timeout: patience(MINUTE), interval: 100 })
      .toBeGreaterThanOrEqual(times);
  await logs('the API server does not answer; retrying', 1);
  line.mend();
  await leads('operator-c');
  await fleet.addPool('away');
  await fleet.addNode('away-0', 'away');

  line.cut();
  await logs('gave up leadership; waiting to lead again', 1);
  expect(await ask(started, '/readyz')).toBe(200);
  line.mend();
  await logs('leading', 2);
  await fleet.runs('away-0', await fleet.change('away', 'next'), MINUTE);
  started.operator.kill('SIGTERM');
  expect(await started.operator).toMatchObject({ exitCode: 0 });
});
