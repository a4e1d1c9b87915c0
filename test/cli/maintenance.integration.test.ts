/** maintenance against an API server that evicts: leases, cordons, budgets, and the way back. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseReboot, parseRepair, parseRetry } from '../../api/annotation-requests.ts';
import {
  ConfigMaps,
  type Lease,
  Leases,
  type Node,
  Nodes,
  PodDisruptionBudgets,
  Pods,
} from '../../api/kubernetes.ts';
import {
  type MachineConfigNodeStatus,
  MachineConfigNodes,
  type UpdateRecord,
} from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { MaintenanceOutput } from '../../cli/maintenance/maintenance-command.ts';
import { acquireLease, releaseLease } from '../../cluster/lease.ts';
import { seen } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';
import { condition, type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from './cluster-with-pools.ts';

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  await cluster.addPool('worker', { conditions: [condition('Updating', 'True', 'half way')] }, 'rendered-x');
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' } };
  await cluster.client.create(ConfigMaps, owner, { namespace: 'default', signal });
  for (const name of ['worker-0', 'worker-1', 'worker-2']) {
    await cluster.addNode(name, 'worker', {}, { conditions: [condition('UpdatePrepared', 'True')] });
  }
});
afterAll(() => cluster.stop());

const namespace = 'medik8s-leases';
const operatorsLease = (node: string) => ({ namespace, name: `node-${node}`, holder: 'shale-operator' });
const leaseOf = (node: string): Promise<Lease | undefined> =>
  cluster.client.find(Leases, `node-${node}`, { namespace, signal });
const nodeOf = (name: string) => cluster.client.get(Nodes, name, { signal });

async function addPod(name: string, nodeName: string): Promise<void> {
  const { uid = '' } = (await cluster.client.get(ConfigMaps, 'web', { namespace: 'default', signal }))
    .metadata;
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'web', uid, controller: true };
  const spec = {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'web', image: 'web' }],
  };
  const metadata = { name, labels: { app: 'web' }, ownerReferences: [owner] };
  const pod = await cluster.client.create(
    Pods,
    { apiVersion: 'v1', kind: 'Pod', metadata, spec },
    { namespace: 'default', signal },
  );
  const conditions = [{ type: 'Ready', status: 'True' as const }];
  await cluster.client.replaceStatus(
    Pods,
    { ...pod, status: { phase: 'Running', conditions } },
    { namespace: 'default', signal },
  );
}

describe('start and end', { timeout: patience(PROCESSES_MS) }, () => {
  test('report a rollout in progress, and change nothing before the user confirms', async () => {
    const { exitCode, stderr } = await cluster.shale('maintenance', 'start', 'worker-0', '--reason', 'disk');
    expect(exitCode).toBe(1);
    expect(stderr).toBe(
      'shale: node worker-0: a rollout of pool worker is in progress; until the maintenance ends, the rollout skips the node and counts it as unavailable; use --yes to continue or --wait to wait for its update',
    );
    expect((await nodeOf('worker-0')).metadata.annotations?.[annotations.plannedMaintenance]).toBeUndefined();
  });

  test('take a node out of service and put it back exactly', async () => {
    const before = await nodeOf('worker-0');
    await addPod('web-0', 'worker-0');
    const args = ['maintenance', 'start', 'worker-0', '--reason', 'new disk', '--until', '2h', '--yes'];
    const started = await cluster.shale(...args);
    expect(started.exitCode).toBe(0);
    expect(started.stdout).toContain('node worker-0: drained');
    const during = await nodeOf('worker-0');
    expect(during.spec?.unschedulable).toBe(true);
    expect(await cluster.client.find(Pods, 'web-0', { namespace: 'default', signal })).toBeUndefined();
    const { spec: held } = (await leaseOf('worker-0')) ?? {};
    expect(held?.holderIdentity).toMatch(/^shale-maintenance\/./);
    expect(held?.leaseDurationSeconds).toBeGreaterThan(7_000);
    expect(held?.leaseDurationSeconds).toBeLessThanOrEqual(7_200);

    const again = await cluster.shale(...args);
    expect(again.exitCode).toBe(0);
    const ended = await cluster.shale('maintenance', 'end', 'worker-0');
    expect(ended).toMatchObject({ exitCode: 0, stdout: 'node worker-0: maintenance ended, schedulable' });
    const after = await nodeOf('worker-0');
    expect({ annotations: after.metadata.annotations ?? {}, spec: after.spec }).toEqual({
      annotations: before.metadata.annotations ?? {},
      spec: before.spec ?? {},
    });
    expect(await leaseOf('worker-0')).toBeUndefined();
    expect((await cluster.shale('maintenance', 'end', 'worker-0')).stdout).toBe(
      'node worker-0: not in maintenance',
    );
  });

  test('leave a node cordoned that was cordoned before', async () => {
    const body = { spec: { unschedulable: true } };
    await cluster.client.patch(Nodes, 'worker-1', { type: 'merge', body }, { signal });
    await cluster.shale('maintenance', 'start', 'worker-1', '--reason', 'x', '--yes', '--no-drain');
    const { stdout } = await cluster.shale('maintenance', 'end', 'worker-1');
    expect(stdout).toBe('node worker-1: maintenance ended, cordoned, as before');
    expect((await nodeOf('worker-1')).spec?.unschedulable).toBe(true);
  });

  test('wait for an update under way', async () => {
    await acquireLease(cluster.client, { ...operatorsLease('worker-2'), durationSeconds: 300 }, signal);
    const args = ['maintenance', 'start', 'worker-2', '--reason', 'x', '--yes'];
    const refused = await cluster.shale(...args);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: 'shale: node worker-2: it is being updated to rendered-x; use --wait to wait for it',
    });
    const waiting = cluster.shale(...args, '--wait', '--timeout', '90s');
    // The flag comes first: from then on the rollout lets go of the node as soon as it can.
    const isFlagged = ({ metadata }: Node) =>
      metadata.annotations?.[annotations.plannedMaintenance] !== undefined;
    await seen(cluster.client, Nodes, 'worker-2', isFlagged);
    await releaseLease(cluster.client, operatorsLease('worker-2'), signal);
    expect(await waiting).toMatchObject({ exitCode: 0 });
    expect((await leaseOf('worker-2'))?.spec?.holderIdentity).toMatch(/^shale-maintenance\//);
  });

  test('name the pod and the budget that block a drain, and list shows the node', async () => {
    await addPod('web-1', 'worker-2');
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    };
    await cluster.client.create(PodDisruptionBudgets, budget, { namespace: 'default', signal });
    const blocked = await cluster.shale(
      ...['maintenance', 'start', 'worker-2', '--reason', 'fan', '--timeout', '1s'],
    );
    expect(blocked.exitCode).toBe(1);
    expect(blocked.stderr).toContain("pod default/web-1 can't be evicted: PodDisruptionBudget web");
    const { stdout } = await cluster.shale('maintenance', 'list', '-o', 'json');
    expect(MaintenanceOutput.parse(JSON.parse(stdout))).toMatchObject([
      { node: 'worker-1', cordoned: true, obstacle: 'cordoned, and not by Shale' },
      { node: 'worker-2', reason: 'fan', cordoned: true },
    ]);
  });
});

test('a node that is not there', { timeout: patience(PROCESSES_MS) }, async () => {
  const { exitCode, stderr } = await cluster.shale('maintenance', 'start', 'nobody', '--reason', 'x');
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: 'shale: no node is named nobody' });
});

describe('a repair', { timeout: patience(PROCESSES_MS) }, () => {
  const changed = '/etc/app.conf: is not there, but should be a file';
  const drifted = {
    conditions: [condition('NodeDegraded', 'True', changed, 'ConfigDrift')],
    changedByHand: { count: 1, paths: [{ path: '/etc/app.conf', message: changed }] },
  };
  const requestOn = async (name: string) =>
    (await cluster.client.get(MachineConfigNodes, name, { signal })).metadata.annotations?.[
      annotations.repair
    ];

  test('of a node on which nothing differs, or that no pool selects, requests nothing', async () => {
    await cluster.addNode('same-0', 'worker', {}, { conditions: [condition('Updated', 'True')] });
    expect(await cluster.shale('repair', 'same-0', '--wait')).toMatchObject({
      exitCode: 0,
      stdout: 'node same-0: nothing differs from its config',
    });
    expect(await requestOn('same-0')).toBeUndefined();
    expect(await cluster.shale('repair', 'nowhere')).toMatchObject({ exitCode: 2 });
  });

  test('says what it overwrites, requests it, and waits for the daemon', async () => {
    await cluster.addNode('changed-0', 'worker', {}, drifted);
    const dry = await cluster.shale('repair', 'changed-0', '--dry-run');
    expect(dry).toMatchObject({ exitCode: 0 });
    expect(dry.stdout).toContain(`node changed-0: would overwrite what was changed by hand: ${changed}`);
    expect(await requestOn('changed-0')).toBeUndefined();

    const waiting = cluster.shale('repair', 'changed-0', '--wait', '--timeout', '90s');
    await seen(
      cluster.client,
      MachineConfigNodes,
      'changed-0',
      ({ metadata }) => metadata.annotations?.[annotations.repair] !== undefined,
    );
    const { id, by } = parseRepair((await requestOn('changed-0')) ?? '');
    expect(by).not.toBe('');
    const node = await cluster.client.get(MachineConfigNodes, 'changed-0', { signal });
    const lastRepair = { id, by, finishedAt: '2026-01-01T00:00:00Z', result: 'Succeeded' as const };
    const status = { conditions: [condition('Updated', 'True')], lastRepair };
    await cluster.client.replaceStatus(MachineConfigNodes, { ...node, status }, { signal });
    const { exitCode, stdout } = await waiting;
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      `node changed-0: requested a repair, which overwrites what was changed by hand: ${changed}`,
    );
  });

  test('of a node that somebody else holds is refused, and --force says what it overrides', async () => {
    await cluster.addNode('held-0', 'worker', {}, drifted);
    const lease = { namespace, name: 'node-held-0', holder: 'ops' };
    await acquireLease(cluster.client, { ...lease, durationSeconds: 300 }, signal);
    const body = { spec: { unschedulable: true } };
    await cluster.client.patch(Nodes, 'held-0', { type: 'merge', body }, { signal });
    const why = 'its lease is held by ops; cordoned, and not by Shale';
    expect(await cluster.shale('repair', 'held-0')).toMatchObject({
      exitCode: 1,
      stderr: `shale: node held-0: not repaired, because somebody else holds it: ${why}. Run this again once the node is released, or use --force to overwrite what differs all the same`,
    });
    const dry = await cluster.shale('repair', 'held-0', '--dry-run');
    expect(dry.stdout).toContain(`only --force overrides: ${why}`);
    expect(await requestOn('held-0')).toBeUndefined();

    const forced = await cluster.shale('repair', 'held-0', '--force');
    expect(forced).toMatchObject({ exitCode: 0 });
    expect(forced.stdout).toContain(`somebody else holds the node, which --force overrides: ${why}`);
    expect(parseRepair((await requestOn('held-0')) ?? '').leaseHolder).toBe('ops');
  });

  test('of a node in the own maintenance is requested under its lease', async () => {
    await cluster.addNode('own-0', 'worker', {}, drifted);
    const start = ['maintenance', 'start', 'own-0', '--reason', 'x', '--yes', '--no-drain'];
    expect(await cluster.shale(...start)).toMatchObject({ exitCode: 0 });
    const { exitCode, stdout } = await cluster.shale('repair', 'own-0');
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain('--force');
    const { leaseHolder } = parseRepair((await requestOn('own-0')) ?? '');
    expect(leaseHolder).toMatch(/^shale-maintenance\/./);
    expect(leaseHolder).toBe((await leaseOf('own-0'))?.spec?.holderIdentity);
  });

  test('that was not carried out in time says so', async () => {
    await cluster.addNode('silent-0', 'worker', {}, drifted);
    const { exitCode, stderr } = await cluster.shale('repair', 'silent-0', '--wait', '--timeout', '1s');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('timed out after 1s: silent-0: waiting for its daemon');
  });
});

describe('a retry', { timeout: patience(PROCESSES_MS) }, () => {
  const ended = (config: string, finishedAt: string): UpdateRecord => ({
    config,
    actions: [{ type: 'Reboot' }],
    causes: [],
    source: 'test',
    message: 'disk full',
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt,
    bootIDBefore: '1',
    bootIDAfter: '2',
    result: 'RolledBack',
  });
  const FAILED_AT = '2026-01-01T00:01:00.000Z';
  const failed = (finishedAt = FAILED_AT, config = 'rendered-x'): MachineConfigNodeStatus => ({
    configVersion: { current: 'rendered-w', desired: 'rendered-x' },
    lastUpdate: ended(config, finishedAt),
    conditions: [condition('NodeDegraded', 'True', 'disk full', 'HealthCheckFailed')],
  });
  const requestOn = async (name: string) =>
    (await cluster.client.get(MachineConfigNodes, name, { signal })).metadata.annotations?.[
      annotations.retry
    ];
  const report = async (name: string, status: MachineConfigNodeStatus) => {
    const node = await cluster.client.get(MachineConfigNodes, name, { signal });
    await cluster.client.replaceStatus(MachineConfigNodes, { ...node, status }, { signal });
  };

  test.each<[string, MachineConfigNodeStatus, string]>([
    ['well', { conditions: [condition('Updated', 'True')] }, 'its last update did not fail'],
    ['moved', failed(FAILED_AT, 'rendered-v'), 'its target is rendered-x now'],
    [
      'odd',
      { conditions: [condition('NodeDegraded', 'True', 'no ostree', 'UnsupportedHost')] },
      'it is degraded for another reason: no ostree',
    ],
  ])('of a node that is %s is refused', async (name, status, why) => {
    await cluster.addNode(name, 'worker', {}, status);
    const { exitCode, stderr } = await cluster.shale('retry', name, '--wait');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(new RegExp(`^shale: node ${name}: nothing to retry: .*${why}`));
    expect(await requestOn(name)).toBeUndefined();
  });

  test.each([
    [[], 'either a node or --pool'],
    [['x', '--pool', 'worker'], 'either a node or --pool'],
    [['nowhere'], 'does not exist'],
    [['--pool', 'nothing'], 'no pool is named nothing'],
  ])('of %j is invalid', async (args, why) => {
    const { exitCode, stderr } = await cluster.shale('retry', ...args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(why);
  });

  test('names the failure that it is for, is requested once, and waits until the node runs its target', async () => {
    await cluster.addNode('failed-0', 'worker', {}, failed());
    const requested = await cluster.shale('retry', 'failed-0');
    expect(requested).toMatchObject({
      exitCode: 0,
      stdout: 'node failed-0: requested a retry of the update to rendered-x, which failed: disk full',
    });
    const text = (await requestOn('failed-0')) ?? '';
    const { by, ...request } = parseRetry(text);
    expect(by).not.toBe('');
    expect(request).toMatchObject({ config: 'rendered-x', failedAt: FAILED_AT });
    const again = await cluster.shale('retry', 'failed-0');
    expect(again).toMatchObject({
      exitCode: 0,
      stdout: 'node failed-0: a retry of the update to rendered-x is requested already',
    });
    expect(await requestOn('failed-0')).toBe(text);

    await report('failed-0', failed('2026-01-01T00:09:00.000Z'));
    const waiting = cluster.shale('retry', 'failed-0', '--wait', '--timeout', '90s');
    await seen(
      cluster.client,
      MachineConfigNodes,
      'failed-0',
      ({ metadata }) => metadata.annotations?.[annotations.retry] !== text,
    );
    await report('failed-0', {
      configVersion: { current: 'rendered-x', desired: 'rendered-x' },
      conditions: [condition('Updated', 'True')],
    });
    expect(await waiting).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/\ndone$/) });
  });

  test('of a pool is requested on every node whose update failed', async () => {
    await cluster.addPool('retried');
    expect(await cluster.shale('retry', '--pool', 'retried')).toMatchObject({
      exitCode: 1,
      stderr: 'shale: pool retried: no update of its nodes failed',
    });
    await cluster.addNode('retried-1', 'retried', {}, failed());
    await cluster.addNode('retried-0', 'retried', {}, failed());
    await cluster.addNode('retried-2', 'retried', {}, { conditions: [condition('Updated', 'True')] });
    const { exitCode, stdout } = await cluster.shale('retry', '--pool', 'retried');
    expect(exitCode).toBe(0);
    expect(stdout.split('\n').map((line) => line.slice(0, 15))).toEqual([
      'node retried-0:',
      'node retried-1:',
    ]);
    expect(await requestOn('retried-0')).toBeDefined();
    expect(await requestOn('retried-2')).toBeUndefined();
  });

  test('that nobody carries out in time says so', async () => {
    await cluster.addNode('silent-1', 'worker', {}, failed());
    const { exitCode, stderr } = await cluster.shale('retry', 'silent-1', '--wait', '--timeout', '1s');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('timed out after 1s: silent-1: waiting for its daemon');
  });
});

describe('a reboot', { timeout: patience(PROCESSES_MS) }, () => {
  const requestOn = async (name: string) =>
    (await cluster.client.get(MachineConfigNodes, name, { signal })).metadata.annotations?.[
      annotations.reboot
    ];

  test.each<[string[], number, string]>([
    [['nowhere'], 2, 'does not exist'],
    [['mute-0'], 1, 'node mute-0: its daemon has not reported yet'],
  ])('of %j is refused', async (names, exitCode, why) => {
    await cluster.addNode(`mute-${exitCode - 1}`, 'worker', {}, {});
    expect(await cluster.shale('reboot', ...names)).toMatchObject({
      exitCode,
      stderr: expect.stringContaining(why),
    });
  });

  test('is requested of the boot that the node is in, with who wants it and why, and says what it waits for', async () => {
    await cluster.addNode('rebooted', 'worker', {}, { bootID: 'boot-1' });
    const flag = { [annotations.plannedMaintenance]: JSON.stringify({ by: 'ops', reason: 'new disk' }) };
    await cluster.client.patch(
      Nodes,
      'rebooted',
      { type: 'merge', body: { metadata: { annotations: flag } } },
      { signal },
    );
    const run = await cluster.shale('reboot', 'rebooted', '--reason', 'new BIOS');
    expect(run).toMatchObject({
      exitCode: 0,
      stdout: 'node rebooted: requested a reboot',
      stderr: expect.stringContaining('node rebooted is skipped: flagged for maintenance by ops: new disk'),
    });
    expect(parseReboot((await requestOn('rebooted')) ?? '')).toMatchObject({
      bootID: 'boot-1',
      reason: 'new BIOS',
      by: expect.stringMatching(/./),
    });
  });
});

test('a machine without a daemon is not powered off, and nothing is changed', async () => {
  await cluster.addNode('silent', 'worker', {}, {});
  expect(
    await cluster.shale('maintenance', 'start', 'silent', '--reason', 'disk', '--power-off'),
  ).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('node silent: its daemon has not reported yet'),
  });
  expect((await nodeOf('silent')).spec?.unschedulable).not.toBe(true);
  expect(await leaseOf('silent')).toBeUndefined();
});
