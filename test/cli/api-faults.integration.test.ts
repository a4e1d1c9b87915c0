/** Commands of an administrator whose API server restarts, and whose cluster others change at the same time. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { patience } from '../fixtures/patience.ts';
import { type ApiProxy, type Fate, startApiProxy } from './api-proxy.ts';
import {
  API_VERSION,
  condition,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from './cluster-with-pools.ts';

const namespace = 'shale-system';
let cluster: PoolCluster;
let proxy: ApiProxy;
const shale = (...args: string[]) =>
  cluster.shale(...args, '--kubeconfig', path.join(cluster.dir, 'proxied'));

beforeAll(async () => {
  cluster = await startPoolCluster();
  for (const pool of ['worker', 'infra']) {
    const conditions = [condition('Updated', 'True'), condition('BuildSuccess', 'True')];
    await cluster.addPool(pool, { conditions, observedGeneration: 1 }, 'rendered-x');
  }
  proxy = await startApiProxy(cluster.env.KUBECONFIG);
  await writeFile(path.join(cluster.dir, 'proxied'), proxy.kubeconfig, { mode: 0o600 });
});
afterAll(async () => {
  await proxy?.stop();
  await cluster?.stop();
});
beforeEach(async () => {
  proxy.decide(() => 'forward');
  await cluster.client.delete(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal });
});

const switchOf = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: SWITCH_CONFIG_MAP },
  data,
});
const switchData = async () =>
  (await cluster.client.get(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal })).data;
const ON = { enabled: 'true', pools: 'worker', imageRepository: 'r.example.com/os/{pool}' };
const isSwitchWrite = (line: string) => /^(PATCH|POST) .*\/configmaps/.test(line);

/** Does something once, right before the first write of the switch reaches the API server. */
function beforeWrite(act: () => Promise<unknown>): void {
  let isDone = false;
  proxy.decide(async (line): Promise<Fate> => {
    if (!isDone && isSwitchWrite(line)) {
      isDone = true;
      await act();
    }
    return 'forward';
  });
}

describe('another writer is faster', { timeout: patience(PROCESSES_MS) }, () => {
  test('enable adds its pool to what the other wrote', async () => {
    await cluster.client.create(ConfigMaps, switchOf(ON), { namespace, signal });
    const body = { data: { pushSecret: 'push' } };
    beforeWrite(() =>
      cluster.client.patch(ConfigMaps, SWITCH_CONFIG_MAP, { type: 'merge', body }, { namespace, signal }),
    );
    const { exitCode, stderr } = await shale('enable', '--pool', 'infra');
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(await switchData()).toEqual({ ...ON, pools: 'worker,infra', pushSecret: 'push' });
  });

  test('enable adds its pool to a ConfigMap that another created', async () => {
    beforeWrite(() => cluster.client.create(ConfigMaps, switchOf(ON), { namespace, signal }));
    const { exitCode, stderr } = await shale(
      'enable',
      '--pool',
      'infra',
      '--image-repository',
      ON.imageRepository,
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(await switchData()).toEqual({ ...ON, pools: 'worker,infra' });
  });

  test('disable removes its pool from the list that the other wrote', async () => {
    await cluster.client.create(ConfigMaps, switchOf(ON), { namespace, signal });
    const body = { data: { pools: 'worker,infra' } };
    beforeWrite(() =>
      cluster.client.patch(ConfigMaps, SWITCH_CONFIG_MAP, { type: 'merge', body }, { namespace, signal }),
    );
    const { exitCode, stderr } = await shale('disable', '--pool', 'worker');
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(await switchData()).toEqual({ ...ON, pools: 'infra' });
  });
});

/** Breaks every connection for a number of requests, from the first that `from` accepts. */
function breakConnections(from: (line: string) => boolean, count: number): { left(): number } {
  let left = count;
  let isBroken = false;
  proxy.decide((line) => {
    if (isBroken && left > 0) {
      left -= 1;
      return 'break';
    }
    isBroken ||= from(line);
    return 'forward';
  });
  return { left: () => left };
}

describe('the API server restarts while a command waits', { timeout: patience(PROCESSES_MS) }, () => {
  test('enable --wait goes on when the server responds again', async () => {
    await cluster.client.create(ConfigMaps, switchOf(ON), { namespace, signal });
    const outage = breakConnections(isSwitchWrite, 60);
    const waiting = shale('enable', '--pool', 'infra', '--wait', '--timeout', '5m');
    await createConfigs();
    const { exitCode, stdout, stderr } = await waiting;
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('waiting for the API server: list '),
    });
    expect(stdout).toContain('done');
    expect(outage.left()).toBe(0);
  });

  test('status --wait goes on when the server responds again', async () => {
    await cluster.client.create(ConfigMaps, switchOf({ ...ON, pools: 'infra' }), { namespace, signal });
    await createConfigs();
    // It reads the cluster once to reject a wrong name, and again to watch it.
    const outage = breakConnections((line) => line.includes('/nodemaintenances'), 60);
    const { exitCode, stderr } = await shale('status', 'infra', '--wait', '--timeout', '5m');
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('waiting for the API server: list '),
    });
    expect(outage.left()).toBe(0);
  });

  test('ends with 69 at its deadline when the server does not respond again', async () => {
    await cluster.client.create(ConfigMaps, switchOf(ON), { namespace, signal });
    breakConnections(isSwitchWrite, Number.POSITIVE_INFINITY);
    const { exitCode, stderr } = await shale('enable', '--pool', 'infra', '--wait', '--timeout', '2s');
    expect(exitCode).toBe(69);
    expect(stderr).toMatch(/^shale: list /m);
  });

  test('status --wait of a server that does not respond ends at once', async () => {
    breakConnections(() => true, Number.POSITIVE_INFINITY);
    const { exitCode, stderr } = await shale('status', '--wait', '--timeout', '5m');
    expect(exitCode).toBe(69);
    expect(stderr).not.toContain('waiting for the API server');
  });
});

/** Creates what an operator creates for the switch; pools without nodes are at their target then. */
/** As the operator would; none runs here. */
async function createConfigs(): Promise<void> {
  for (const pool of ['worker', 'infra']) {
    await cluster.client.delete(MachineOSConfigs, pool, { signal });
    await cluster.client.create(
      MachineOSConfigs,
      {
        apiVersion: API_VERSION,
        kind: 'MachineOSConfig',
        metadata: { name: pool, labels: { 'shale.dev/made-by-switch': 'true' } },
        spec: { machineConfigPool: { name: pool }, renderedImagePushSpec: `r.example.com/os/${pool}:latest` },
      },
      { signal },
    );
  }
}
