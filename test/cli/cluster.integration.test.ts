/** Commands that read a cluster, run as processes against an API server with an operator behind it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Deployments, Nodes, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations, OPERATOR_DEPLOYMENT, SHALE_VERSION } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { readObjects } from '../../cli/change/object-files.ts';
import { PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { VersionOutput } from '../../cli/version/version-skew.ts';
import { acquireLease, releaseLease } from '../../cluster/lease.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { policyStatus } from '../../rollout/controllers/policy-controller.ts';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { startApiServer } from '../../workshop/apiserver/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { type ClusterUnderTest, log, seenBy, startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { condition } from '../fixtures/observed-cluster.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { machineConfig, root, type ShaleRun, shale, shaleProcess } from './shale-process.ts';

const signal = deadline(300_000);
let cluster: ClusterUnderTest;
let dir: string;
/** Name of the rendered config that the pool and one of its nodes are in. */
let running: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-cli-'));
  cluster = await startClusterUnderTest(signal);
  await writeFile(kubeconfig(), cluster.kubeconfig(), { mode: 0o600 });
  await applyObjects(cluster.client, await readObjects([path.join(root, 'examples')]), {
    log,
    signal,
  });
  running = await addRendering();
  await addNode('worker-0', running, {
    [annotations.plannedMaintenance]: '{"reason":"new disk","by":"ops"}',
  });
  await addNode('worker-1', undefined);
}, patience(60_000));
afterAll(async () => {
  await cluster.stop();
  await rm(dir, { recursive: true });
});

const kubeconfig = () => path.join(dir, 'kubeconfig');
const here = (...args: string[]): Promise<ShaleRun> =>
  shale(args, { env: { KUBECONFIG: kubeconfig(), HOME: dir } });

/** What an operator would have written for the pool worker before its chrony.conf had a third server. */
async function addRendering(): Promise<string> {
  const pool = await cluster.client
    .get<MachineConfigPool>(MachineConfigPools, 'worker', { signal })
    .catch(() =>
      cluster.client.create<MachineConfigPool>(
        MachineConfigPools,
        {
          apiVersion: 'machineconfiguration.openshift.io/v1',
          kind: 'MachineConfigPool',
          metadata: { name: 'worker' },
          spec: {
            machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
          },
        },
        { signal },
      ),
    );
  const { stdout } = await here('render', '--pool', 'worker', '-o', 'json');
  const rendered = JSON.parse(stdout) as MachineConfig;
  const operator = await cluster.clientOf('shale-operator');
  await operator.create(MachineConfigs, rendered, { signal });
  const { name } = rendered.metadata;
  await cluster.client.replaceStatus(
    MachineConfigPools,
    { ...pool, status: { ...pool.status, configuration: { name } } },
    { signal },
  );
  return name;
}

async function addNode(name: string, current?: string, own: Record<string, string> = {}): Promise<void> {
  await cluster.client.create(
    Nodes,
    { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations: own } },
    { signal },
  );
  const node: NewObject<MachineConfigNode> = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name },
    spec: { node: { name }, pool: { name: 'worker' }, configVersion: { desired: running } },
  };
  const created = await cluster.client.create(MachineConfigNodes, node, { signal });
  if (current === undefined) return;
  const status = {
    mode: 'Standard' as const,
    configVersion: { current, desired: current },
    baseImage: `registry.example.org/base@sha256:${'1'.repeat(64)}`,
    osBackend: { name: 'ostree' as const, version: '2022.7', installsPackages: false },
  };
  await cluster.client.replaceStatus(MachineConfigNodes, { ...created, status }, { signal });
}

/** What a builder records of the image of the rendering that runs. @returns its name. */
async function addFailedBuild(): Promise<string> {
  const name = 'worker-failed';
  const build = await cluster.client.create<MachineOSBuild>(
    MachineOSBuilds,
    {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineOSBuild',
      metadata: { name },
      spec: {
        machineConfig: { name: running },
        machineOSConfig: { name: 'worker' },
        renderedImagePushSpec: 'registry.example.org/os/worker:1',
      },
    },
    { signal },
  );
  const conditions = [condition('Failed', 'True', 'denied', 'RegistryRefused')];
  await cluster.client.replaceStatus(MachineOSBuilds, { ...build, status: { conditions } }, { signal });
  return name;
}

describe('plan', () => {
  test('says what a file asks of its nodes, from what each of them runs', async () => {
    const { stdout, exitCode } = await here('plan', '-f', 'examples/tour/chrony-v2.yaml');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('pool worker (2 nodes): Restart(chronyd.service)');
    expect(stdout).toContain('  nodes: 1 restart, 1 reboot');
    expect(stdout).toContain(
      '  warning: node worker-1 is counted as a reboot: it has not reported what it runs',
    );
    expect(stdout).toContain('  warning: node worker-0 is skipped: flagged for maintenance by ops: new disk');
  });

  test('says which image it makes, how long it takes, and what holds it up', async () => {
    const config = await cluster.client.create<MachineOSConfig>(
      MachineOSConfigs,
      {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineOSConfig',
        metadata: { name: 'worker' },
        spec: {
          machineConfigPool: { name: 'worker' },
          renderedImagePushSpec: 'registry.example.org/os/worker:latest',
          baseImage: 'registry.example.org/base:1',
        },
      },
      { signal },
    );
    const pause = (paused: boolean) =>
      cluster.client.patch(
        MachineConfigPools,
        'worker',
        { type: 'merge', body: { spec: { paused } } },
        { signal },
      );
    await pause(true);
    const build = await addFailedBuild();
    const { stdout } = await here('plan', '-f', 'examples/tour/chrony-v2.yaml', '-o', 'json');
    expect((await here('plan')).stdout).toContain(
      '  warning: the last build failed (RegistryRefused: denied), and the change starts no other one: ',
    );
    await cluster.client.delete(MachineOSBuilds, build, { signal });
    await pause(false);
    await cluster.client.delete(MachineOSConfigs, config.metadata.name, { signal });
    const worker = PlanOutput.parse(JSON.parse(stdout)).find(({ pool }) => pool === 'worker');
    expect(worker).toMatchObject({
      image: { way: 'Append', why: 'one layer on the base image' },
      time: { why: expect.stringMatching(/^there is no previous Append build of the pool; /) },
      warnings: expect.arrayContaining([
        'the last build failed (RegistryRefused: denied), and the change starts another one',
        'the pool is paused: no update starts until it is resumed',
      ]),
    });
  });

  test('names nodes that would refuse it, with their backend and why, and fails', async () => {
    const extension = path.join(dir, 'extension.json');
    await writeFile(extension, machineConfig('usbguard', {}, { extensions: ['usbguard'] }));
    const why = "ostree keeps the host's operating system and installs no packages";
    const words = `node worker-0 (ostree 2022.7) can't apply it without layering: extensions usbguard: ${why}`;
    const table = await here('plan', '-f', extension);
    expect(table).toMatchObject({ exitCode: 1, stderr: "shale: some pools can't apply the change" });
    expect(table.stdout).toContain(`\n  refused: ${words}`);
    const markdown = await here('plan', '-f', extension, '-o', 'markdown');
    expect(markdown.stdout).toContain(`\n- **refused:** ${words}`);
    const { stdout } = await here('plan', '-f', extension, '-o', 'json');
    const worker = PlanOutput.parse(JSON.parse(stdout)).find(({ pool }) => pool === 'worker');
    expect(worker).toMatchObject({
      refusing: [{ nodes: ['worker-0'], osBackend: 'ostree 2022.7', why: [expect.stringContaining(why)] }],
    });
  });

  test('warns of a node whose lease another holds', async () => {
    const wish = { namespace: 'medik8s-leases', name: 'node-worker-1', holder: 'node-health-check' };
    await acquireLease(cluster.client, { ...wish, durationSeconds: 600 }, signal);
    const { stdout } = await here('plan', '-f', 'examples/tour/chrony-v2.yaml');
    expect(stdout).toContain('  warning: node worker-1 is skipped: its lease is held by node-health-check');
    await releaseLease(cluster.client, wish, signal);
  });

  test('names the pod and the budget that would block a drain, of a change that drains', async () => {
    const inDefault = { namespace: 'default', signal };
    const pod = await cluster.client.create(
      Pods,
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', labels: { app: 'web' } },
        spec: { nodeName: 'worker-0', containers: [{ name: 'web', image: 'web' }] },
      },
      inDefault,
    );
    await cluster.client.replaceStatus(Pods, { ...pod, status: { phase: 'Running' } }, inDefault);
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    };
    await cluster.client.create(PodDisruptionBudgets, budget, inDefault);
    await seenBy(
      'PodDisruptionBudget web',
      (each) => cluster.client.find(PodDisruptionBudgets, 'web', { namespace: 'default', signal: each }),
      ({ status }) => status?.disruptionsAllowed === 0,
    );
    const blocked =
      "node worker-0 can't be drained now: PodDisruptionBudget default/web allows no disruption of pod web";
    const drains = await here('plan', '-f', 'examples/tour/karg.yaml');
    expect(drains.stdout).toContain(blocked);
    await cluster.client.delete(PodDisruptionBudgets, 'web', inDefault);
    await cluster.client.delete(Pods, 'web', inDefault);
    expect((await here('plan', '-f', 'examples/tour/karg.yaml')).stdout).not.toContain(blocked);
  });

  test('says without files what the nodes have yet to do', async () => {
    const { stdout, exitCode } = await here('plan');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      'pool worker (2 nodes): no changes to the target, which 1 node does not run yet',
    );
    expect(stdout).toContain('  nodes: 1 no change, 1 reboot');
  });

  test('fails on what its worst node pays', async () => {
    const { exitCode } = await here('plan', '-f', 'examples/tour/chrony-v2.yaml', '--fail-on', 'reboot');
    expect(exitCode).toBe(1);
  });

  test('takes away what --prune files do not name, and keeps the pools', async () => {
    const { stdout } = await here('plan', '--prune', '-f', 'examples/20-worker-chrony.yaml');
    expect(stdout).toContain('removed /etc/sysctl.d/90-shale.conf');
    expect(stdout).toContain('pool worker (2 nodes): Reboot');
  });

  test('counts every node once', async () => {
    const { stdout } = await here('plan', '-f', 'examples/tour/karg.yaml', '-o', 'json');
    const worker = PlanOutput.parse(JSON.parse(stdout)).find(({ pool }) => pool === 'worker');
    expect(worker).toMatchObject({ nodes: 2, outcomes: { nothing: 0, live: 0, reboot: 2 } });
  });
});

describe('diff', () => {
  test('shows what a file changes', async () => {
    const { stdout, exitCode } = await here('diff', '--pool', 'worker', '-f', 'examples/tour/chrony-v2.yaml');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^\+.*ntp3\.example\.org/m);
    expect((await here('diff', '-f', 'examples')).exitCode).toBe(0);
  });

  test('--running shows what nodes do not run yet', async () => {
    const same = await here('diff', '--running', '--pool', 'worker');
    expect(same).toMatchObject({ exitCode: 0, stdout: 'pool worker: no changes' });
    const more = await here('diff', '--running', '--pool', 'worker', '-f', 'examples/tour/karg.yaml');
    expect(more.exitCode).toBe(1);
    expect(more.stdout).toContain(`pool worker: ${running} -> rendered-worker-`);
  });

  test('compares two MachineConfigs by name, rendered or not', async () => {
    const { stdout, exitCode } = await here('diff', '20-worker-chrony', running, '-o', 'text');
    expect(exitCode).toBe(1);
    expect(stdout).toContain('+++ b /etc/sysctl.d/90-shale.conf');
    expect((await here('diff', running, running)).exitCode).toBe(0);
    expect(await here('diff', 'worker-0')).toMatchObject({ exitCode: 0, stdout: 'no changes' });
    const node = await here('diff', '20-worker-chrony', 'worker-0');
    expect(node).toMatchObject({ exitCode: 1 });
    expect(node.stdout).toContain('+++ b /etc/sysctl.d/90-shale.conf');
    const unknown = await here('diff', running, 'rendered-worker-none');
    expect(unknown).toMatchObject({
      exitCode: 2,
      stderr: 'shale: rendered-worker-none is not a MachineConfig, pool or node, and no such file exists',
    });
  });
});

test('validate and render take what it has', async () => {
  expect((await here('validate')).stdout).toBe(
    '7 MachineConfigs and 3 other objects are valid\nwarning: MachineConfig 85-infra-registry-limits: no MachineConfigPool selects it',
  );
  expect((await here('render', '--pool', 'worker', '-o', 'name')).stdout).toBe(running);
});

test('policies shows what is in force, and why it differs from spec', async () => {
  const before = await here('policies');
  expect(before.stdout).toContain('/etc/chrony.conf: Restart(chronyd.service)  (set by the admin)');
  expect(before.stderr).toContain('no operator has reported the effective policies');

  const stored = await cluster.client.get<MachineConfiguration>(MachineConfigurations, 'cluster', { signal });
  const status = policyStatus(
    stored,
    { ...defaultPolicySettings, containerRuntimeUnit: 'containerd.service', pools: [] },
    0,
  );
  const written = await cluster.client.replaceStatus(
    MachineConfigurations,
    { ...stored, status },
    { signal },
  );
  const after = await here('policies');
  expect(after.stdout).toContain('/etc/containers/policy.json: Reload(containerd.service)');
  expect(after.stderr).toBe('');

  await cluster.client.replace(MachineConfigurations, { ...written, spec: {} }, { signal });
  const lagging = await here('policies');
  expect(lagging.stdout).toContain('/etc/chrony.conf: Restart(chronyd.service)  (set by the admin)');
  expect(lagging.stderr).toContain('spec has changed, but');
});

test('the completion knows pools, nodes, and pools in which a change is being tried', async () => {
  const names = async (...words: string[]) =>
    (await here('completion', 'names', ...words)).stdout.split('\n');
  expect(await names('nodes', '--', 'explain')).toEqual(['worker-0', 'worker-1']);
  expect(await names('pools-and-nodes', '--', 'status')).toEqual(
    expect.arrayContaining(['worker', 'worker-0', 'worker-1']),
  );
  expect(await names('tried-pools', '--', 'try', 'confirm')).toEqual(['']);
  const text = JSON.stringify({ id: 'a', until: '2026-06-01T00:10:00Z' });
  const body = { metadata: { annotations: { [annotations.rollbackDeadline]: text } } };
  await cluster.client.patch(MachineConfigPools, 'worker', { type: 'merge', body }, { signal });
  expect(await names('tried-pools', '--', 'try', 'confirm')).toEqual(['worker']);
  expect(await here('try', 'confirm', 'worker')).toMatchObject({
    exitCode: 0,
    stdout: 'pool worker: confirmed',
  });
  expect(await here('try', 'confirm', 'worker')).toMatchObject({
    exitCode: 0,
    stdout: 'pool worker: no change is being tried',
  });
  expect(await here('try', 'cancel')).toMatchObject({ exitCode: 0, stdout: 'no change is being tried' });
  expect(await here('try', 'cancel', 'nowhere')).toMatchObject({ exitCode: 2 });
  const forKubectl = await here('completion', 'kubectl', '--', 'explain', 'worker-1');
  expect(forKubectl.stdout).toBe('worker-1\n:4');
});

test('a command runs as the user of --as, whom the API server checks', async () => {
  const stranger = await here('status', '--as', 'jane', '--as-group', 'system:authenticated');
  expect({ ...stranger, stderr: '' }).toEqual({ stdout: '', stderr: '', exitCode: 69 });
  expect(stranger.stderr).toMatch(/^shale: .*"jane" cannot list resource/);
  const admin = await here('status', '--as', 'jane', '--as-group=dev', '--as-group', 'system:masters');
  expect({ exitCode: admin.exitCode, stderr: admin.stderr }).toEqual({ exitCode: 0, stderr: '' });
  const nobody = await here('status', '--as-group', 'system:masters');
  expect(nobody).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'shale: --as-group requires --as, the user to impersonate',
  });
});

test('a server whose certificate the system trusts needs no CA in the kubeconfig', async () => {
  const file = path.join(dir, 'without-ca');
  const ca = path.join(dir, 'ca.pem');
  const text = cluster.kubeconfig();
  await writeFile(file, text.replace(/^ *certificate-authority-data:.*\n/m, ''), { mode: 0o600 });
  await writeFile(ca, (await cluster.access('shale-operator')).caPem);
  const env = { KUBECONFIG: file, HOME: dir };
  const trusted = await shaleProcess(['version'], { env: { ...env, SSL_CERT_FILE: ca } });
  expect({ exitCode: trusted.exitCode, stderr: trusted.stderr }).toEqual({ exitCode: 0, stderr: '' });
  const unknown = await shaleProcess(['version'], { env });
  expect(unknown.exitCode).toBe(69);
  expect(unknown.stderr).toMatch(/signed by an authority that is not trusted: [^\n]*$/);
});

test('version shows what the command, the operator and the daemons are, and what does not fit', async () => {
  const client = await here('version', '--client', '-o', 'json');
  expect(VersionOutput.parse(JSON.parse(client.stdout))).toEqual({ client: SHALE_VERSION });
  const none = await here('version');
  expect(none.stdout.split('\n')).toEqual([
    `client    ${SHALE_VERSION}`,
    'operator  not running',
    'builder   not running',
    'daemons   unknown (2 nodes)',
  ]);
  const where = { namespace: 'shale-system', signal };
  const deployment = await cluster.client.get(Deployments, OPERATOR_DEPLOYMENT, where);
  const running = (count: number) =>
    cluster.client.patchStatus(
      Deployments,
      OPERATOR_DEPLOYMENT,
      { type: 'merge', body: { status: { ...deployment.status, availableReplicas: count } } },
      where,
    );
  const lease = { namespace: 'shale-system', name: OPERATOR_DEPLOYMENT, holder: 'operator-1' };
  await running(1);
  await acquireLease(cluster.client, { ...lease, durationSeconds: 60, version: '9.0.0' }, signal);
  const { exitCode, stdout, stderr } = await here('version', '-o', 'json');
  expect(exitCode).toBe(0);
  expect(VersionOutput.parse(JSON.parse(stdout))).toMatchObject({
    operator: { state: 'running', version: '9.0.0' },
    daemons: [{ nodes: ['worker-0', 'worker-1'] }],
    warnings: [expect.stringContaining('not supported'), expect.stringContaining('report no version')],
  });
  expect(stderr).toContain('and the operator 9.0.0, which is not supported');
  await releaseLease(cluster.client, lease, signal);
  await running(0);
});

describe('a cluster that is not there is one line and exit code 69:', () => {
  const at = (file: string) => shale(['validate'], { env: { KUBECONFIG: file, HOME: dir } });

  test('no kubeconfig', async () => {
    const missing = path.join(dir, 'nothing');
    const { exitCode, stderr } = await at(missing);
    expect(exitCode).toBe(69);
    expect(stderr.split('\n')).toHaveLength(1);
    const named = await shale(['status', '--kubeconfig', missing], { env: { HOME: dir } });
    expect(named.stderr).toMatch(/^shale: no cluster found: .*\/nothing does not exist; specify one/);
  });

  test('none is named anywhere', async () => {
    const { exitCode, stderr } = await shale(['explain', 'worker-0'], { env: { KUBECONFIG: '', HOME: dir } });
    expect(exitCode).toBe(69);
    expect(stderr).toContain(
      'KUBECONFIG is not set, and there is no ~/.kube/config; specify one with --kubeconfig',
    );
    expect(stderr.split('\n')).toHaveLength(1);
  });

  test('nobody listens', async () => {
    const port = await freePort();
    const file = path.join(dir, 'closed');
    await writeFile(file, cluster.kubeconfig().replaceAll(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`));
    const { exitCode, stderr } = await at(file);
    expect(exitCode).toBe(69);
    expect(stderr).toContain('connection refused by 127.0.0.1:');
    expect(stderr.split('\n')).toHaveLength(1);
  });

  test.each(['status', 'doctor', 'gather'])('nobody listens, for shale %s', async (command) => {
    const port = await freePort();
    const file = path.join(dir, `closed-for-${command}`);
    await writeFile(file, cluster.kubeconfig().replaceAll(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`));
    const { exitCode, stderr } = await shale([command], { env: { KUBECONFIG: file, HOME: dir } });
    expect({ exitCode, lines: stderr.split('\n').length }).toEqual({ exitCode: 69, lines: 1 });
    expect(stderr).toMatch(/^shale: .*: connection refused by 127\.0\.0\.1:\d+$/);
  });

  test.each(['status', 'doctor', 'gather'])('the token has expired, for shale %s', async (command) => {
    const file = path.join(dir, `expired-for-${command}`);
    await writeFile(file, cluster.kubeconfig().replace(/token: .*/, 'token: expired'));
    const { exitCode, stderr } = await shale([command], { env: { KUBECONFIG: file, HOME: dir } });
    expect({ exitCode, lines: stderr.split('\n').length }).toEqual({ exitCode: 69, lines: 1 });
    expect(stderr).toMatch(/^shale: .*: Unauthorized$/);
  });

  test.each([
    ['a directory', undefined, /^shale: no cluster found: .* is a directory; expected a file; specify one/],
    ['no YAML', 'a: [', /^shale: no cluster found: .*no YAML is not YAML: unexpected end .*; specify one/],
    ['empty', '', /^shale: no cluster found: .*empty is not YAML: expected a document, .*; specify one/],
  ])('the kubeconfig is %s', async (what, text, message) => {
    const file = path.join(dir, what);
    if (text === undefined) await mkdir(file);
    else await writeFile(file, text);
    const { exitCode, stderr } = await at(file);
    expect({ exitCode, lines: stderr.split('\n').length }).toEqual({ exitCode: 69, lines: 1 });
    expect(stderr).toMatch(message);
  });

  test.each(['confirm', 'cancel'])('also that of the flags of try %s, which try has too', async (command) => {
    const missing = path.join(dir, 'nothing');
    for (const args of [
      ['try', command, '--kubeconfig', missing],
      ['--kubeconfig', missing, 'try', command],
    ]) {
      const { exitCode, stderr } = await shale(args, { env: { HOME: dir } });
      expect({ exitCode, stderr }).toEqual({ exitCode: 69, stderr: expect.stringContaining(missing) });
    }
  });

  test('Shale is not installed', async () => {
    const bare = await startApiServer();
    try {
      const file = path.join(dir, 'bare');
      await writeFile(file, bare.kubeconfig());
      const { exitCode, stderr } = await at(file);
      expect(exitCode).toBe(69);
      expect(stderr).toContain("install Shale's manifests first");
      expect(stderr.split('\n')).toHaveLength(1);
    } finally {
      await bare.stop();
    }
  });
});
