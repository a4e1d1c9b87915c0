/** The operator as a process in a cluster: what it needs, what it logs, and whom it refuses to stand beside. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Deployments, Namespaces, Pods } from '../../api/kubernetes.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type ClusterUnderTest, NAMESPACE, seen, startClusterUnderTest } from './cluster-under-test.ts';
import { startOperatorProcess } from './operator-process.ts';

const POD = 'shale-operator-0';
const signal = deadline(300_000);
let cluster: ClusterUnderTest;
let dir: string;

beforeAll(async () => {
  cluster = await startClusterUnderTest(signal);
  dir = await mkdtemp(path.join(tmpdir(), 'shale-operator-'));
}, patience(60_000));
afterAll(async () => {
  await cluster.stop();
  await rm(dir, { recursive: true });
});

const startOperator = () => startOperatorProcess(cluster, dir, { name: POD });

async function createDeployment(name: string, namespace: string): Promise<void> {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'shale:test' }] } };
  const spec = { selector: { matchLabels: labels }, template };
  await cluster.client.create(
    Deployments,
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec },
    { namespace, signal },
  );
}

test('the operator says what it lacks when it is in no pod of the cluster', async () => {
  await cluster.client.delete(Deployments, 'shale-operator', { namespace: NAMESPACE, signal });
  const { exitCode, stderr } = await (await startOperator()).operator;
  expect(exitCode).toBe(69);
  expect(stderr).toMatch(
    /^shale: Cannot determine the image for the builder: there is no pod shale-operator-0/m,
  );
});

test('the operator leads, works, logs what the MachineConfiguration requests, and exits with code 0 on SIGTERM', async () => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: POD } } as const;
  const spec = { containers: [{ name: 'operator', image: 'shale:test' }] };
  await cluster.client.create(Pods, { ...pod, spec }, { namespace: NAMESPACE, signal });
  const { operator } = await startOperator();
  await seen(
    cluster.client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    ({ status }) => status?.policyDigest !== undefined,
  );
  let logged = '';
  operator.stderr.on('data', (chunk: Buffer) => {
    logged += String(chunk);
  });
  expect(logged).not.toContain('"msg":"asked the API server"');
  const body = { spec: { operatorLogLevel: 'TraceAll' } };
  await cluster.client.patch(
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    { type: 'merge', body },
    { signal },
  );
  await vi.waitFor(
    () => {
      for (const message of ['reconciled', 'asked the API server'])
        expect(logged).toContain(`"msg":"${message}"`);
    },
    { timeout: patience(20_000), interval: 20 },
  );
  operator.kill('SIGTERM');
  expect((await operator).exitCode).toBe(0);
});

test("the operator refuses to start beside OpenShift's own", async () => {
  const namespace = 'openshift-machine-config-operator';
  await cluster.client.create(
    Namespaces,
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { signal },
  );
  await createDeployment('machine-config-operator', namespace);
  const { exitCode, stderr } = await (await startOperator()).operator;
  expect(exitCode).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([
    "shale: OpenShift's Machine Config Operator runs in this cluster (Deployment openshift-machine-config-operator/machine-config-operator): two operators would undo each other's work, so this one does not start",
  ]);
});
