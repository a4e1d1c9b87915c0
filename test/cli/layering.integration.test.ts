/** enable and disable with an operator that answers: what is written, waited for and repeated. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConfigMap, ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { patience } from '../fixtures/patience.ts';
import {
  API_VERSION,
  condition,
  imageOf,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from './cluster-with-pools.ts';

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  const updated = { observedGeneration: 1, conditions: [condition('Updated', 'True')] };
  await cluster.addPool('worker', updated);
  await cluster.addPool('infra', updated);
  await cluster.addNode('worker-0', 'worker', {}, { mode: 'Standard' });
});
afterAll(() => cluster.stop());

const namespace = 'shale-system';
const switchData = async (): Promise<ConfigMap['data']> =>
  (await cluster.client.get(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal })).data;
const REPOSITORY = 'r.example.com/os/{pool}';

describe('enable', { timeout: patience(PROCESSES_MS) }, () => {
  test('refuses what the operator would not understand, and writes nothing', async () => {
    const { exitCode, stderr } = await cluster.shale('enable');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('data.imageRepository: is ""; expected host[:port]/repository');
    expect(await cluster.client.find(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal })).toBeUndefined();
  });

  test('refuses a pool that is not there', async () => {
    const { exitCode, stderr } = await cluster.shale('enable', '--pool', 'wroker');
    expect(exitCode).toBe(2);
    expect(stderr).toBe('shale: no pool is named wroker; the pools are: infra, worker');
  });

  test('writes the ConfigMap as an admin would, reports what delays it, and can be repeated', async () => {
    const flag = { [annotations.plannedMaintenance]: '{"reason":"new disk","by":"ops"}' };
    const body = { metadata: { annotations: flag } };
    await cluster.client.patch(Nodes, 'worker-0', { type: 'merge', body }, { signal });
    const args = ['enable', '--pool', 'worker', '--image-repository', REPOSITORY, '--push-secret', 'push'];
    const dry = await cluster.shale(...args, '--dry-run', '--wait');
    expect(dry).toMatchObject({ exitCode: 0 });
    expect(dry.stdout.split('\n')).toEqual([
      'pool worker: switching 1 of 1 node to an image, at most one reboot per node',
      'ConfigMap shale-system/on-cluster-layering: layering is enabled for worker; images are pushed to r.example.com/os/{pool} (dry run)',
    ]);
    expect(dry.stderr).toContain('node worker-0 is skipped');
    expect(await cluster.client.find(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal })).toBeUndefined();
    const first = await cluster.shale(...args);
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.stdout).toContain(
      'layering is enabled for worker; images are pushed to r.example.com/os/{pool}',
    );
    expect(first.stdout).toContain(
      'pool worker: switching 1 of 1 node to an image, at most one reboot per node',
    );
    expect(first.stderr).toContain('node worker-0 is skipped: flagged for maintenance by ops: new disk');
    expect(first.stderr).toContain(
      'Secret shale-system/push: not found; builds wait for it. To create it: kubectl -n shale-system create secret docker-registry push',
    );
    expect(first.stderr).toContain('no operator is running in namespace shale-system');
    const data = { enabled: 'true', pools: 'worker', imageRepository: REPOSITORY, pushSecret: 'push' };
    expect(await switchData()).toEqual(data);
    const again = await cluster.shale(...args);
    expect(again).toMatchObject({ exitCode: 0 });
    expect(again.stdout).toContain('unchanged, layering is enabled');
    expect(await switchData()).toEqual(data);
  });

  test('--wait says how far it is when the time is over', async () => {
    const { exitCode, stderr } = await cluster.shale('enable', '--wait', '--timeout', '1s');
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      'shale: timed out after 1s: worker: 0/1 nodes, its MachineOSConfig is not created yet',
    );
  });

  test('--wait ends when the last node is there', async () => {
    const waiting = cluster.shale('enable', '--wait', '--timeout', '60s');
    const image = imageOf('worker', 'a');
    await cluster.client.create(
      MachineOSConfigs,
      {
        apiVersion: API_VERSION,
        kind: 'MachineOSConfig',
        metadata: { name: 'worker', labels: { 'shale.dev/made-by-switch': 'true' } },
        spec: {
          machineConfigPool: { name: 'worker' },
          renderedImagePushSpec: 'r.example.com/os/worker:latest',
        },
      },
      { signal },
    );
    await setNode({ configImage: { desiredImage: image } }, { mode: 'Layered', image });
    await setPool([condition('Updated', 'True'), condition('BuildSuccess', 'True')]);
    expect(await waiting).toMatchObject({ exitCode: 0 });
  });
});

describe('disable', { timeout: patience(PROCESSES_MS) }, () => {
  test('refuses to end a rollback that holds a pool, and writes nothing', async () => {
    const before = await switchData();
    const hold = JSON.stringify({ config: 'rendered-worker-0', by: 'ann', reason: 'fan', at: '' });
    await setRollback(hold);
    expect(await cluster.shale('disable')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^shale: pool worker is held by a rollback at rendered-worker-0 \(rolled back by ann: fan\).*shale rollback worker --clear$/m,
      ),
    });
    expect((await cluster.shale('enable', '--base-image', 'r.example.com/base:2')).exitCode).toBe(1);
    expect(await switchData()).toEqual(before);
    await setRollback(null);
  });

  test('takes one pool back, and the last one switches off; the settings stay', async () => {
    await cluster.shale('enable', '--pool', 'infra');
    expect(await switchData()).toMatchObject({ enabled: 'true', pools: 'worker,infra' });
    const one = await cluster.shale('disable', '--pool', 'infra');
    expect(one).toMatchObject({ exitCode: 0 });
    expect(await switchData()).toMatchObject({ enabled: 'true', pools: 'worker' });
    expect(await cluster.shale('disable', '--dry-run')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(
        'pool worker: switching 1 of 1 node to the stock image, one reboot per node',
      ),
    });
    expect(await switchData()).toMatchObject({ enabled: 'true', pools: 'worker' });
    const { stdout } = await cluster.shale('disable', '--yes');
    expect(stdout).toContain('layering is disabled');
    expect(await switchData()).toMatchObject({ enabled: 'false', imageRepository: REPOSITORY });
  });

  test('--wait ends when every node is back and nothing is left', async () => {
    const waiting = cluster.shale('disable', '--wait', '--timeout', '60s');
    await cluster.client.delete(MachineOSConfigs, 'worker', { signal });
    await setNode({ configImage: null }, { mode: 'Standard' });
    await setPool([condition('Updated', 'True')]);
    expect(await waiting).toMatchObject({ exitCode: 0 });
  });

  test("leaves an admin's own MachineOSConfig, and says so", async () => {
    const spec = {
      machineConfigPool: { name: 'infra' },
      renderedImagePushSpec: 'r.example.com/os/infra:latest',
    };
    const own = { apiVersion: API_VERSION, kind: 'MachineOSConfig', metadata: { name: 'infra' }, spec };
    await cluster.client.create(MachineOSConfigs, own, { signal });
    const { exitCode, stderr } = await cluster.shale('disable', '--pool', 'infra');
    expect(exitCode).toBe(0);
    expect(stderr).toContain('pool infra stays layered: its MachineOSConfig was created by hand');
  });
});

async function setNode(spec: object, { mode, image }: { mode: 'Standard' | 'Layered'; image?: string }) {
  const patched = await cluster.client.patch<MachineConfigNode>(
    MachineConfigNodes,
    'worker-0',
    { type: 'merge', body: { spec } },
    { signal },
  );
  const status = {
    mode,
    configVersion: { current: 'rendered-x', desired: 'rendered-x' },
    ...(image === undefined ? {} : { configImage: { currentImage: image } }),
    conditions: [condition('Updated', 'True')],
  };
  await cluster.client.replaceStatus(MachineConfigNodes, { ...patched, status }, { signal });
}

async function setRollback(hold: string | null) {
  const body = { metadata: { annotations: { [annotations.rollback]: hold } } };
  await cluster.client.patch(MachineConfigPools, 'worker', { type: 'merge', body }, { signal });
}

async function setPool(conditions: ReturnType<typeof condition>[]) {
  const pool = await cluster.client.get<MachineConfigPool>(MachineConfigPools, 'worker', { signal });
  const status = { conditions, ...present({ observedGeneration: pool.metadata.generation }) };
  await cluster.client.replaceStatus(MachineConfigPools, { ...pool, status }, { signal });
}
