/** history, explain and rollback on a cluster whose operator renders: text, waits and exit codes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseRollback } from '../../api/annotation-requests.ts';
import { Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { ExplainOutput } from '../../cli/explain-command.ts';
import { HistoryOutput } from '../../cli/history/pool-history.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { patience } from '../fixtures/patience.ts';
import { condition, type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from './cluster-with-pools.ts';
import { machineConfig } from './shale-process.ts';

let cluster: PoolCluster;
/** Names of two rendered configs of pool worker, the older first. */
const names: string[] = [];

beforeAll(async () => {
  cluster = await startPoolCluster();
  await cluster.addPool('worker', { conditions: [condition('Updated', 'True')] });
  for (const server of ['a', 'b']) names.push(await renderWith(server));
  const pool = await poolNow();
  const source = [{ name: '20-chrony' }];
  const machineConfigSelector = { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } };
  const configuration = { name: names[1] ?? '', source };
  const replaced = await cluster.client.replace(
    MachineConfigPools,
    { ...pool, spec: { ...pool.spec, configuration, machineConfigSelector } },
    { signal },
  );
  await cluster.client.replaceStatus(
    MachineConfigPools,
    { ...replaced, status: { ...replaced.status, configuration: { name: names[1] ?? '' } } },
    { signal },
  );
  const [from = '', to = ''] = names;
  const cause = {
    subject: '/etc/chrony.conf',
    kind: 'file' as const,
    change: 'changed' as const,
    rule: 'policy for /etc/chrony.conf',
    actions: [{ type: 'Restart' as const, service: 'chronyd.service' }],
  };
  await cluster.addNode(
    'worker-0',
    'worker',
    { configVersion: { desired: to } },
    {
      mode: 'Standard',
      configVersion: { current: to, desired: to },
      conditions: [condition('Updated', 'True')],
      lastUpdate: {
        config: to,
        actions: cause.actions,
        causes: [cause],
        source: `the diff from ${from}`,
        startedAt: '2026-11-20T10:00:00Z',
        finishedAt: '2026-11-20T10:00:02Z',
        bootIDBefore: 'x',
        bootIDAfter: 'x',
        result: 'Succeeded',
      },
    },
  );
});
afterAll(() => cluster.stop());

const poolNow = () => cluster.client.get<MachineConfigPool>(MachineConfigPools, 'worker', { signal });

/** Does what an operator does when chrony.conf names another server. */
async function renderWith(server: string): Promise<string> {
  const contents = { source: `data:,server%20${server}` };
  const config = JSON.parse(
    machineConfig('20-chrony', { storage: { files: [{ path: '/etc/chrony.conf', contents }] } }),
  ) as MachineConfig;
  await cluster.client.delete(MachineConfigs, '20-chrony', { signal });
  await cluster.client.create(MachineConfigs, config, { signal });
  const rendering = renderPool({ pool: await poolNow(), configs: [config], controllerVersion: 'test' });
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
  const operator = await cluster.clientOf('shale-operator');
  await operator.create(MachineConfigs, rendering.rendered, { signal });
  return rendering.rendered.metadata.name;
}

/** Does what an operator and a daemon do when the pool is rolled back to a config. */
async function sendTo(config: string): Promise<void> {
  const spec = { configVersion: { desired: config } };
  const patch = { type: 'merge' as const, body: { spec } };
  const node = await cluster.client.patch<MachineConfigNode>(MachineConfigNodes, 'worker-0', patch, {
    signal,
  });
  const status = { ...node.status, configVersion: { current: config, desired: config } };
  await cluster.client.replaceStatus(MachineConfigNodes, { ...node, status }, { signal });
  const pool = await poolNow();
  const conditions = [condition('Updated', 'False', 'slow', 'RolledBack')];
  await cluster.client.replaceStatus(
    MachineConfigPools,
    { ...pool, status: { ...pool.status, conditions } },
    { signal },
  );
}

test('history shows what each rendering changed', { timeout: patience(PROCESSES_MS) }, async () => {
  const { stdout } = await cluster.shale('history', 'worker', '-o', 'json');
  const entries = HistoryOutput.parse(JSON.parse(stdout));
  const wanted = entries.find((entry) => entry.wanted);
  expect(wanted).toMatchObject({ config: names[1], way: 'Render', nodes: 1 });
  const text = await cluster.shale('history', 'worker');
  expect(text.stdout).toContain('changed /etc/chrony.conf (20-chrony)');
  expect((await cluster.shale('history', 'wroker')).exitCode).toBe(2);
});

test('explain shows the whole chain', { timeout: patience(PROCESSES_MS) }, async () => {
  const { stdout } = await cluster.shale('explain', 'worker-0');
  expect(stdout).toContain(
    '  20-chrony -> changed /etc/chrony.conf -> policy for /etc/chrony.conf -> Restart(chronyd.service)',
  );
  expect(stdout).toContain('  result: Succeeded, without a reboot');
  expect(stdout).toContain('next update: none');
  const json = await cluster.shale('explain', 'worker-0', '-o', 'json');
  expect(ExplainOutput.parse(JSON.parse(json.stdout)).last?.rebooted).toBe(false);
  expect((await cluster.shale('explain', 'nobody')).exitCode).toBe(2);
});

describe('rollback', { timeout: patience(PROCESSES_MS) }, () => {
  test('holds the pool at what the operator understands, until it is cleared', async () => {
    const args = ['rollback', 'worker', '--to', names[0] ?? '', '--reason', 'slow'];
    const dry = await cluster.shale(...args, '--dry-run', '--wait');
    expect(dry).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^pool worker: rolling back to .*no changes were made \(dry run\)$/s),
    });
    expect((await poolNow()).metadata.annotations?.[annotations.rollback]).toBeUndefined();
    const done = await cluster.shale(...args);
    expect(done).toMatchObject({ exitCode: 0, stderr: '' });
    const text = (await poolNow()).metadata.annotations?.[annotations.rollback] ?? '';
    expect(parseRollback(text)).toMatchObject({
      config: names[0],
      reason: 'slow',
      by: expect.stringMatching(/./),
    });
    expect((await cluster.shale('rollback', 'worker', '--clear', '--dry-run')).exitCode).toBe(0);
    expect((await poolNow()).metadata.annotations?.[annotations.rollback]).toBe(text);
    expect((await cluster.shale('rollback', 'worker', '--clear')).exitCode).toBe(0);
    expect((await poolNow()).metadata.annotations?.[annotations.rollback]).toBeUndefined();
    expect((await cluster.shale('rollback', 'worker', '--clear')).stdout).toBe(
      'pool worker: there is no rollback to clear',
    );
  });

  test('--wait ends when the pool says that it is there, or with 1 when the time is over', async () => {
    const [config = ''] = names;
    const late = await cluster.shale('rollback', 'worker', '--to', config, '--wait', '--timeout', '1s');
    expect(late).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('timed out after 1s: worker: '),
    });
    const waiting = cluster.shale('rollback', 'worker', '--to', config, '--wait', '--timeout', '60s');
    await sendTo(config);
    expect(await waiting).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/\ndone$/) });
  });

  test('takes the beginning of a name, and warns of the nodes that it skips', async () => {
    const flag = (value: string | null) => ({
      metadata: { annotations: { [annotations.plannedMaintenance]: value } },
    });
    const mark = (value: string | null) =>
      cluster.client.patch(Nodes, 'worker-0', { type: 'merge', body: flag(value) }, { signal });
    await mark('{"reason":"new disk","by":"ops"}');
    const args = ['rollback', 'worker', '--to', (names[0] ?? '').slice(0, -20), '--dry-run'];
    const { exitCode, stdout, stderr } = await cluster.shale(...args);
    expect([exitCode, stderr]).toEqual([
      0,
      'warning: node worker-0 is skipped: flagged for maintenance by ops: new disk',
    ]);
    expect(stdout).toContain(`pool worker: rolling back to ${names[0]}`);
    await mark(null);
  });

  test('refuses what the pool never had', async () => {
    const { exitCode, stderr } = await cluster.shale('rollback', 'worker', '--to', 'rendered-infra-1');
    expect(exitCode).toBe(2);
    expect(stderr).toContain(
      "pool worker: can't roll back to rendered-infra-1; expected the number of a revision, or a rendered config",
    );
  });
});
