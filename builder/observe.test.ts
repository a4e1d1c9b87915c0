import { describe, expect, test } from 'vitest';
import { ConfigMaps } from '../api/kubernetes.ts';
import { MachineConfigs } from '../api/machine-config.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';
import { MemoryCluster, SteppedInformer } from '../test/fixtures/fleet/memory-cluster.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aPool,
  aRenderedConfig,
} from '../test/fixtures/objects.ts';
import { BaseImages, enqueueOnChange, isMovable } from './observe.ts';

const [ONE, TWO] = ['1', '2'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
const TAG = 'r.example.com/os/stock:1';

function setUp() {
  let now = 0;
  const stale: string[] = [];
  const bases = new BaseImages({ freshMs: 100, now: () => now, onStale: (image) => stale.push(image) });
  return {
    bases,
    stale,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('an image by digest is what it is', async () => {
  const { bases } = setUp();
  const image = `r.example.com/os/stock@${ONE}`;
  expect(isMovable(image)).toBe(false);
  expect(await bases.resolve(image, () => Promise.reject(new Error('nobody asks')))).toBe(image);
});

test('a tag is looked up again when what is known of it is old', async () => {
  const { bases, pass } = setUp();
  expect(isMovable(TAG)).toBe(true);
  expect(await bases.resolve(TAG, async () => ONE)).toBe(`${TAG}@${ONE}`);
  pass(99);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${ONE}`);
  pass(1);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${TWO}`);
});

test('what is known counts on while the registry is away, and is asked for again', async () => {
  const { bases, pass, stale } = setUp();
  const away = () => Promise.reject(new Error('away'));
  await expect(bases.resolve(TAG, away)).rejects.toThrow('away');
  await bases.resolve(TAG, async () => ONE);
  pass(100);
  expect(await bases.resolve(TAG, away)).toBe(`${TAG}@${ONE}`);
  expect(stale).toEqual([TAG]);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${TWO}`);
});

describe('a change', () => {
  const cluster = () => {
    const memory = new MemoryCluster();
    for (const pool of ['worker', 'infra']) {
      memory.put(MachineOSConfigs, aMachineOSConfig(pool));
      memory.put(MachineConfigPools, aPool(pool, { configuration: { name: `rendered-${pool}-1` } }));
    }
    return memory;
  };
  const policies = {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: {},
  };

  const worker = aMachineOSConfig('worker');
  const rebuilt = {
    ...worker,
    metadata: { ...worker.metadata, annotations: { [annotations.rebuild]: '1' } },
  };

  test.each<[string, Kind<KubernetesObject>, KubernetesObject, readonly string[]]>([
    // Both name one repository, so it may be the other's now.
    ['of a MachineOSConfig', MachineOSConfigs, rebuilt, ['worker', 'infra']],
    ['that it reported itself', MachineOSConfigs, aMachineOSConfig('worker', 'worker-x'), []],
    ['of a build', MachineOSBuilds, aBuild('worker-x', 'rendered-worker-1'), ['worker']],
    ['of a pool', MachineConfigPools, aPool('infra'), ['infra']],
    ['of a pool that is not layered', MachineConfigPools, aPool('master'), []],
    ["of a pool's rendered config", MachineConfigs, aRenderedConfig('rendered-infra-1'), ['infra']],
    ['of another MachineConfig', MachineConfigs, aRenderedConfig('rendered-infra-0'), []],
    ['of the policies', MachineConfigurations, policies, ['worker', 'infra']],
    ['of a node', MachineConfigNodes, aMachineConfigNode('worker-1'), ['worker']],
  ])('%s enqueues what it concerns', (_what, kind, object, expected) => {
    const memory = cluster();
    const caches = {
      machineOSConfigs: new SteppedInformer(memory, MachineOSConfigs),
      builds: new SteppedInformer(memory, MachineOSBuilds),
      pools: new SteppedInformer(memory, MachineConfigPools),
      machineConfigs: new SteppedInformer(memory, MachineConfigs),
      machineConfigurations: new SteppedInformer(memory, MachineConfigurations),
      nodes: new SteppedInformer(memory, MachineConfigNodes),
      signingKeys: new SteppedInformer(memory, ConfigMaps),
    };
    const catchUp = () => {
      for (const cache of Object.values(caches)) cache.catchUp();
    };
    catchUp();
    const added: string[] = [];
    enqueueOnChange(caches, { add: (key: string) => void added.push(key) } as WorkQueue);
    memory.put(kind, object);
    catchUp();
    expect(added).toEqual(expected);
  });
});

test('a MachineOSConfig that is deleted is a change', () => {
  const memory = new MemoryCluster();
  const worker = aMachineOSConfig('worker');
  memory.put(MachineOSConfigs, { ...worker, metadata: { ...worker.metadata, uid: '1' } });
  const machineOSConfigs = new SteppedInformer(memory, MachineOSConfigs);
  const silent = {
    list: () => [],
    get: () => undefined,
    size: () => 0,
    onChange: () => undefined,
    start: async () => undefined,
    synced: async () => undefined,
  };
  const caches = {
    builds: silent,
    pools: silent,
    machineConfigs: silent,
    machineConfigurations: silent,
    signingKeys: silent,
  };
  const added: string[] = [];
  machineOSConfigs.catchUp();
  const queue = { add: (key: string) => void added.push(key) } as WorkQueue;
  enqueueOnChange({ ...caches, nodes: silent, machineOSConfigs }, queue);
  memory.remove(MachineOSConfigs, 'worker');
  machineOSConfigs.catchUp();
  expect(added).toEqual(['worker']);
});
