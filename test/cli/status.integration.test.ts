/** `shale status` as a process on a cluster that changes: text, JSON, waits and watches. */
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { StatusOutput } from '../../cli/observe/status-view.ts';
import { patience } from '../fixtures/patience.ts';
import { condition, type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from './cluster-with-pools.ts';
import { root } from './shale-process.ts';

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  const conditions = [condition('Updating', 'True', '1 of 2 nodes run rendered-x', 'NodesUpdating')];
  const counts = { machineCount: 2, updatedMachineCount: 1, observedGeneration: 1 };
  await cluster.addPool('worker', { conditions, ...counts }, 'rendered-x');
  const there = { conditions: [condition('Updated', 'True')], observedGeneration: 1 };
  await cluster.addPool('infra', there, 'rendered-x');
  await cluster.addNode('worker-0', 'worker', {}, running('rendered-x'));
  await cluster.addNode('worker-1', 'worker', {}, pulling(20));
});
afterAll(() => cluster.stop());

function running(config: string) {
  return {
    mode: 'Standard' as const,
    configVersion: { current: config, desired: config },
    conditions: [condition('Updated', 'True')],
  };
}

function pulling(percent: number) {
  return {
    conditions: [condition('UpdatePrepared', 'False', 'Staging the target')],
    staging: { bytesDone: percent * 2 ** 20, bytesTotal: 100 * 2 ** 20 },
  };
}

test('shows pools, and nodes that have something to do', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { stdout, exitCode } = await cluster.shale('status');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^worker +NodesUpdating +1\/2 /m);
  expect(stdout).toContain('pool worker: 1 of 2 nodes run rendered-x');
  expect(stdout).toMatch(/^worker-1 +worker +staging .* Staging the target; 20% of 100.0 MiB/m);
  expect(stdout).toContain('warning: no operator is running');
});

test('shows one pool or one node alone', { timeout: patience(PROCESSES_MS) }, async () => {
  const pool = await cluster.shale('status', 'worker', '-o', 'wide');
  expect(pool.stdout).toContain('worker-0');
  expect(pool.stdout).not.toContain('infra');
  const node = await cluster.shale('status', 'node/worker-1');
  expect(node.stdout).toMatch(/^ {2}state +staging/m);
  const nothing = await cluster.shale('status', 'wroker');
  expect(nothing).toMatchObject({
    exitCode: 2,
    stderr: 'shale: no pool or node is named wroker; the pools are: infra, worker',
  });
});

test('-l without a match says so', { timeout: patience(PROCESSES_MS) }, async () => {
  const { stdout, exitCode } = await cluster.shale('status', '-l', 'zone=north');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('warning: no node has the labels of --selector');
  const list = await cluster.shale('maintenance', 'list', '-l', 'zone=north');
  expect(list).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('warning: no node has the labels of --selector'),
  });
});

test('-o json is as promised', { timeout: patience(PROCESSES_MS) }, async () => {
  const { stdout } = await cluster.shale('status', '-o', 'json');
  expect(StatusOutput.parse(JSON.parse(stdout)).nodes.map(({ state }) => state)).toEqual([
    'updated',
    'staging',
  ]);
});

test('--wait ends when all is there, or with 1 when the time is over', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const infra = await cluster.shale('status', 'infra', '--wait', '--timeout', '60s');
  expect(infra).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^infra +Updated/m) });
  const node = await cluster.shale('status', 'node/worker-0', '--wait', '-o', 'json');
  expect(node.exitCode).toBe(0);
  expect(StatusOutput.parse(JSON.parse(node.stdout)).nodes).toHaveLength(1);
  expect(await cluster.shale('status', '--wait', '--timeout', '1s')).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringContaining('timed out after 1s: worker: 1/2 nodes'),
  });
  expect((await cluster.shale('status', '--wait', '--watch')).exitCode).toBe(2);
});

test('--watch prints a line for each change where there is no terminal', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const stop = new AbortController();
  const watching = execa(path.join(root, 'bin/shale'), ['status', 'worker', '--watch'], {
    cwd: root,
    env: cluster.env,
    reject: false,
    cancelSignal: stop.signal,
    lines: true,
  });
  const seen: string[] = [];
  for await (const line of watching) {
    seen.push(line);
    if (line.includes('node worker-1: staging')) await setStaging(line.includes('20%') ? 60 : 100);
    // The loop ends when the process does.
    if (line.includes('100% of')) stop.abort();
  }
  await watching;
  const ofNode = seen.filter((line) => line.includes('node worker-1')).map((line) => /\d+%/.exec(line)?.[0]);
  expect(ofNode).toEqual(['20%', '60%', '100%']);
  expect(seen.filter((line) => line.includes('node worker-0'))).toHaveLength(1);
});

async function setStaging(percent: number): Promise<void> {
  const node = await cluster.client.get(MachineConfigNodes, 'worker-1', { signal });
  await cluster.client.replaceStatus(MachineConfigNodes, { ...node, status: pulling(percent) }, { signal });
}
