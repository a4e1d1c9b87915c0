/** `--clusters`: several API servers at once, one of which can't be read, by files and by Cluster API's Secrets. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Namespaces, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { labels } from '../../api/names.ts';
import { FleetPlanOutput } from '../../cli/fleet/fleet-plan.ts';
import { FleetStatusOutput } from '../../cli/fleet/fleet-status.ts';
import { patience } from '../fixtures/patience.ts';
import {
  API_VERSION,
  condition,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from './cluster-with-pools.ts';
import { root, shale } from './shale-process.ts';

const timeout = patience(PROCESSES_MS);
const change = path.join(root, 'examples/tour/mixed.yaml');

let north: PoolCluster;
let south: PoolCluster;
beforeAll(async () => {
  [north, south] = await Promise.all([startPoolCluster(), startPoolCluster()]);
  const updated = { conditions: [condition('Updated', 'True')], machineCount: 1, updatedMachineCount: 1 };
  await north.addPool('worker', { ...updated, observedGeneration: 1 });
  await south.addPool('worker', { ...updated, observedGeneration: 1 });
  await south.addPool('infra', { conditions: [condition('Updating', 'True', 'infra-0 reboots')] });
  await Promise.all([giveConfig(north, 'worker'), giveConfig(south, 'worker'), giveConfig(south, 'infra')]);
}, timeout);
afterAll(() => Promise.all([north.stop(), south.stop()]));

/** A pool that selects MachineConfigs by its role, and one MachineConfig for it. */
async function giveConfig({ client }: PoolCluster, pool: string): Promise<void> {
  const machineConfigSelector = { matchLabels: { [labels.role]: pool } };
  await client.patch(
    MachineConfigPools,
    pool,
    { type: 'merge', body: { spec: { machineConfigSelector } } },
    { signal },
  );
  await client.create(
    MachineConfigs,
    {
      apiVersion: API_VERSION,
      kind: 'MachineConfig',
      metadata: { name: `00-${pool}`, labels: { [labels.role]: pool } },
      spec: { config: { ignition: { version: '3.4.0' } } },
    },
    { signal },
  );
}

async function kubeconfigOf(cluster: PoolCluster): Promise<string> {
  return readFile(cluster.env.KUBECONFIG, 'utf8');
}

describe('a directory with kubeconfigs', () => {
  let dir: string;
  beforeAll(async () => {
    dir = north.dir;
    await writeFile(path.join(dir, 'north.yaml'), await kubeconfigOf(north));
    await writeFile(path.join(dir, 'south.kubeconfig'), await kubeconfigOf(south));
    await writeFile(path.join(dir, 'west'), 'not a kubeconfig: {');
  });
  const run = (...args: string[]) => shale(args, { env: { HOME: dir } });

  test('status shows the pools of each, and what is known of none', { timeout }, async () => {
    const { stdout, stderr, exitCode } = await run('status', `--clusters=${dir}`);
    expect(stdout).toMatch(/^north +worker +Updated +1\/1/m);
    expect(stdout).toMatch(/^south +infra +/m);
    expect(stdout).toMatch(/^west +- +Unknown/m);
    expect(stdout).toContain('error: cluster west: no cluster found:');
    expect(stderr).toContain('nothing is known of 1 of 4 clusters: west');
    expect(exitCode).toBe(69);
  });

  test('status -o json has what the status of each cluster has', { timeout }, async () => {
    const { stdout } = await run('status', `--clusters=${dir}`, '-o', 'json');
    const found = FleetStatusOutput.parse(JSON.parse(stdout));
    expect(found.map(({ cluster }) => cluster)).toEqual(['kubeconfig', 'north', 'south', 'west']);
    const alone = JSON.parse((await south.shale('status', '-o', 'json')).stdout);
    expect(found[2]).toMatchObject({
      status: { pools: alone.pools.map(({ name }: { name: string }) => ({ name })) },
    });
  });

  test('a plan costs each cluster what it costs it alone', { timeout }, async () => {
    const { stdout, exitCode } = await run('plan', `--clusters=${dir}`, '-f', change, '-o', 'json');
    expect(exitCode).toBe(69);
    const found = FleetPlanOutput.parse(JSON.parse(stdout));
    const alone = JSON.parse((await south.shale('plan', '-f', change, '-o', 'json')).stdout);
    expect(found).toMatchObject([
      { cluster: 'kubeconfig' },
      { cluster: 'north' },
      { plans: alone },
      { cluster: 'west' },
    ]);
  });

  test('a plan as text groups clusters with the same plan, and fails for any of them', {
    timeout,
  }, async () => {
    const { stdout, stderr, exitCode } = await run(
      'plan',
      `--clusters=${dir}`,
      '-f',
      change,
      '--fail-on',
      'reload',
    );
    expect(stdout).toMatch(/^CLUSTER +POOL +NODES +ACTIONS\n/);
    expect(stdout).toMatch(/^clusters kubeconfig, north:$/m);
    expect(stdout).toMatch(/^cluster south:$/m);
    expect(stderr).toContain('cluster north: --fail-on reload: pool worker');
    expect(exitCode).toBe(1);
  });

  test('a directory that is none is a wrong flag', { timeout }, async () => {
    const { stderr, exitCode } = await run('status', '--clusters', 'worker');
    expect(stderr).toContain('--clusters: worker does not exist; expected a directory with kubeconfigs');
    expect(exitCode).toBe(2);
    expect(await run('status', `--clusters=${dir}`, '--watch')).toMatchObject({ exitCode: 2 });
  });
});

describe('the Secrets of a management cluster', () => {
  test('name its workload clusters; a kubeconfig that names a program runs none', { timeout }, async () => {
    await north.client.create(
      Namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shops' } },
      { signal },
    );
    const withProgram = (await kubeconfigOf(south)).replace(
      /user: *\n? *\{?.*/s,
      'user: {exec: {command: "true"}}',
    );
    for (const [name, text] of [
      ['south', await kubeconfigOf(south)],
      ['east', withProgram],
    ] as const)
      await north.client.create(
        Secrets,
        {
          apiVersion: 'v1',
          kind: 'Secret',
          type: 'cluster.x-k8s.io/secret',
          metadata: {
            name: `${name}-kubeconfig`,
            namespace: 'shops',
            labels: { 'cluster.x-k8s.io/cluster-name': name },
          },
          data: { value: Buffer.from(text).toString('base64') },
        },
        { signal },
      );
    const { stdout, exitCode } = await north.shale('status', '--clusters');
    expect(stdout).toMatch(/^shops\/south +worker +Updated/m);
    expect(stdout).toContain("error: cluster shops/east: the kubeconfig can't be used");
    expect(exitCode).toBe(69);
  });

  test('without any, it says what is expected', { timeout }, async () => {
    const { stderr, exitCode } = await south.shale('status', '--clusters');
    expect(stderr).toContain('has no Secrets with kubeconfigs of workload clusters');
    expect(exitCode).toBe(2);
  });
});
