/** The operator as a process: flags, leadership, metrics, exit codes, which its loop alone does not have. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type KubeletConfig, KubeletConfigs } from '../api/kubelet-config.ts';
import { type Deployment, Deployments, Leases, Namespaces } from '../api/kubernetes.ts';
import { MachineConfigs } from '../api/machine-config.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { type MachineConfigurationStatus, MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../api/names.ts';
import { policiesOfPool } from '../disruption/pool-policies.ts';
import {
  type ClusterUnderTest,
  NAMESPACE,
  seen,
  startClusterUnderTest,
} from '../test/e2e/cluster-under-test.ts';
import { ownConditions } from '../test/fixtures/kstatus.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { eventually } from '../workshop/apiserver/conformance/api.ts';
import { freePort } from '../workshop/apiserver/control-plane/free-port.ts';
import { type OperatorFlags, withOperatorFlags } from './flags.ts';
import { runOperator } from './main.ts';

const signal = deadline(120_000);
let cluster: ClusterUnderTest;
let dir: string;

beforeAll(async () => {
  cluster = await startClusterUnderTest(signal);
  dir = await mkdtemp(path.join(tmpdir(), 'shale-operator-main-'));
  await writeFile(path.join(dir, 'kubeconfig'), await operatorsKubeconfig());
  vi.stubEnv('POD_NAME', 'shale-operator-0');
}, patience(60_000));
afterAll(async () => {
  vi.unstubAllEnvs();
  await cluster.stop();
  await rm(dir, { recursive: true });
});

/** The operator's own account: nobody else may create rendered configs. */
async function operatorsKubeconfig(): Promise<string> {
  const { url, caPem, token } = await cluster.access('shale-operator');
  const authority = Buffer.from(caPem).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster: { server: url, 'certificate-authority-data': authority } }],
    users: [{ name: 'operator', user: { token } }],
    contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'operator' } }],
    'current-context': 'context',
  });
}

function flagsOf(...args: readonly string[]): OperatorFlags {
  const command = withOperatorFlags(new Command('operator'));
  const shared = ['--namespace', NAMESPACE, '--kubeconfig', path.join(dir, 'kubeconfig')];
  command.parse([...shared, '--log-level', 'silent', ...args], { from: 'user' });
  return command.opts<OperatorFlags>();
}

/** @returns the operator in this process, and what stops it and waits for its end. */
function start(...args: readonly string[]) {
  const stop = new AbortController();
  const ended = runOperator(flagsOf(...args), stop.signal);
  // It is waited for at the end; a test that fails before that reports its own error.
  ended.catch(() => undefined);
  return {
    stop: async () => {
      stop.abort();
      await ended.catch((error: unknown) => {
        if (error !== stop.signal.reason) throw error;
      });
    },
  };
}

function policiesReported() {
  return seen(
    cluster.client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    ({ status }) => status?.policyDigest !== undefined,
  );
}

async function get(port: number, where: string): Promise<{ status: number; text: string } | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${where}`, { signal });
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
}

test('leads under its pod name, serves metrics once it knows the cluster, and ends with the signal', {
  timeout: patience(60_000),
}, async () => {
  const port = await freePort();
  const operator = start('--metrics-port', String(port), '--image', 'shale:test');
  await policiesReported();
  const lease = await cluster.client.get(Leases, 'shale-operator', { namespace: NAMESPACE, signal });
  expect(lease.spec?.holderIdentity).toBe('shale-operator-0');
  const ready = await eventually(
    () => get(port, '/readyz'),
    (answer) => answer?.status === 200,
  );
  expect(ready?.status).toBe(200);
  const metrics = await get(port, '/metrics');
  for (const controller of [
    'pools',
    'rendering',
    'policy',
    'certificates',
    'pinnedImages',
    'annotations',
    'departed',
    'poweredOff',
    'maintenanceDrains',
  ])
    expect(metrics?.text).toContain(`shale_operator_queue_length{controller="${controller}"}`);
  expect(metrics?.text).toMatch(/shale_operator_reconcile_seconds_count\{controller="policy"\} [1-9]/);
  await operator.stop();
  expect(await get(port, '/healthz')).toBeUndefined();
});

test('a KubeletConfig of a labelled pool is part of what the pool renders to', {
  timeout: patience(60_000),
}, async () => {
  const { client } = cluster;
  const pool = aPool('tuned');
  const role = { 'machineconfiguration.openshift.io/role': 'tuned' };
  await client.create(
    MachineConfigPools,
    { ...pool, metadata: { name: 'tuned', labels: { tuning: 'yes' } } },
    { signal },
  );
  const kubelet: KubeletConfig = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'KubeletConfig',
    metadata: { name: 'tuned' },
    spec: {
      machineConfigPoolSelector: { matchLabels: { tuning: 'yes' } },
      kubeletConfig: { maxPods: 42, evictionHard: { 'memory.available': '5%' } },
    },
  };
  await client.create(KubeletConfigs, kubelet, { signal });
  const operator = start('--image', 'shale:test');
  const inEffect = await seen(
    client,
    KubeletConfigs,
    'tuned',
    ({ status }) => status?.conditions?.some(({ type }) => type === 'Success') ?? false,
  );
  expect(inEffect.status?.observedGeneration).toBe(inEffect.metadata.generation);
  const generated = await client.get(MachineConfigs, '99-tuned-generated-kubelet', { signal });
  expect(generated.metadata.labels).toEqual(role);
  // A pool that selects nothing yet is rendered, too.
  await seen(
    client,
    MachineConfigPools,
    'tuned',
    ({ spec }) => spec.configuration?.source?.some(({ name }) => name === generated.metadata.name) ?? false,
  );
  const body = { spec: { kubeletConfig: { maxPods: '250' } } };
  await client.patch(KubeletConfigs, 'tuned', { type: 'merge', body }, { signal });
  const refused = await seen(
    client,
    KubeletConfigs,
    'tuned',
    ({ status }) => status?.conditions?.some(({ type }) => type === 'Failure') ?? false,
  );
  expect(ownConditions(refused.status?.conditions).map(({ message }) => message)).toEqual([
    'spec.kubeletConfig.maxPods: is "250"; expected an integer of 32 bits',
  ]);
  await operator.stop();
});

test('policies hold for the pools that their selectors name, and follow the labels of pools', {
  timeout: patience(60_000),
}, async () => {
  const { client } = cluster;
  const files = [{ path: '/etc/app/*.conf', actions: [{ type: 'None' as const }] }];
  const policy = { name: 'edge', poolSelector: { matchLabels: { tier: 'edge' } }, files };
  const withFiles = (own: object) => ({
    spec: { shale: { nodeDisruptionPolicies: [{ ...policy, ...own }] } },
  });
  const patch = (body: object) =>
    client.patch(MachineConfigurations, MACHINE_CONFIGURATION, { type: 'merge', body }, { signal });
  const label = (tier: string | null) => {
    const body = { metadata: { labels: { tier } } };
    return client.patch(MachineConfigPools, 'far', { type: 'merge', body }, { signal });
  };
  await client.create(
    MachineConfigPools,
    { ...aPool('far'), metadata: { name: 'far', labels: { tier: 'edge' } } },
    { signal },
  );
  const operator = start('--image', 'shale:test');
  await policiesReported();
  for (const path of ['/**', '/', '/e*/app', '/etc/app/']) {
    await expect(patch(withFiles({ files: [{ ...files[0], path }] }))).rejects.toMatchObject({ status: 422 });
  }
  await patch(withFiles({}));
  const patternsOf = (status: MachineConfigurationStatus | undefined) =>
    policiesOfPool(status, 'far')?.policies.patterns?.map(({ path }) => path);
  const inForce = await seen(
    client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    ({ status }) => patternsOf(status) !== undefined,
  );
  expect(patternsOf(inForce.status)).toEqual(['/etc/app/*.conf']);
  expect(policiesOfPool(inForce.status, 'far')?.policyDigest).not.toBe(inForce.status?.policyDigest);
  expect(inForce.status?.summary?.pools).toBe('far: edge');

  await label(null);
  const gone = await seen(
    client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    ({ status }) => patternsOf(status) === undefined,
  );
  expect(policiesOfPool(gone.status, 'far')?.policyDigest).toBe(gone.status?.policyDigest);
  await patch({ spec: { shale: null } });
  await seen(
    client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    ({ status }) => status?.poolPolicies === undefined,
  );
  await operator.stop();
});

test('serves no metrics unless it is given a port; flags of the page, which it had once, open none and stop nothing', {
  timeout: patience(60_000),
}, async () => {
  await cluster.client.delete(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
  await writeFile(path.join(dir, 'index.html'), '<title>the page</title>');
  vi.stubEnv('SHALE_PAGE_DIR', dir);
  const pagePort = await freePort();
  const operator = start('--image', 'shale:test', '--page-port', String(pagePort), '--cluster-name', 'a');
  await policiesReported();
  expect(await get(pagePort, '/')).toBeUndefined();
  await operator.stop();
});

test('says what it lacks where neither its pod nor its Deployment exists', async () => {
  await cluster.client.delete(Deployments, 'shale-operator', { namespace: NAMESPACE, signal });
  await expect(runOperator(flagsOf(), signal)).rejects.toMatchObject({
    name: 'StartupError',
    kind: 'unavailable',
  });
});

test("does not start beside OpenShift's own operator", async () => {
  const namespace = 'openshift-machine-config-operator';
  const metadata = { name: namespace };
  await cluster.client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal });
  const labels = { app: 'machine-config-operator' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } };
  const deployment: Deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'machine-config-operator' },
    spec: { selector: { matchLabels: labels }, template },
  };
  await cluster.client.create(Deployments, deployment, { namespace, signal });
  await expect(runOperator(flagsOf('--image', 'shale:test'), signal)).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('two operators would undo'),
  });
});
