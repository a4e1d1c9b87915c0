import { beforeEach, describe, expect, it } from 'vitest';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { KubernetesObject } from '../api/object.ts';
import {
  aBuild,
  aMachineOSConfig,
  aNode,
  aPool,
  aRecord,
  aRenderedConfig,
  condition,
} from '../test/fixtures/objects.ts';
import {
  labelled,
  object,
  type RoutedEvents,
  routedEvents,
  workerNode,
} from '../test/fixtures/routed-events.ts';

let caches: RoutedEvents['caches'];
let since: RoutedEvents['since'];
let services: RoutedEvents['services'];

beforeEach(() => {
  ({ caches, since, services } = routedEvents());
});

describe('pools', () => {
  it('a new pool is looked at and rendered at once', () => {
    caches.pools.put(aPool('gpu'));
    expect(since()).toEqual(['policy cluster', 'pools gpu', 'rendering gpu']);
  });

  it('a changed pool is for those that depend on it', () => {
    caches.pools.put(aPool('gpu', { shale: { dependsOn: ['worker'] } }));
    since();
    const status = { conditions: [condition('Updated')] };
    caches.pools.put({ ...aPool('worker'), status } as KubernetesObject);
    expect(since()).toEqual(['pools gpu', 'pools worker']);
    caches.pools.put({ ...aPool('infra'), status } as KubernetesObject);
    expect(since()).toEqual(['pools infra']);
  });

  it('a new pool takes nodes from the pools that they were in', () => {
    caches.nodes.put(workerNode('b', { metadata: { name: 'b', ...labelled('worker', 'gpu') } }));
    since();
    caches.pools.put(aPool('gpu'));
    expect(since()).toEqual(['policy cluster', 'pools gpu', 'pools worker', 'rendering gpu']);
  });

  it('nodes of a deleted pool are left to the controller of nodes without a pool', () => {
    caches.pools.delete('worker');
    expect(since()).toEqual(['departed a', 'policy cluster', 'pools worker']);
  });

  it('other labels of a pool may be those that policies select', () => {
    const pool = aPool('worker');
    caches.pools.put({ ...pool, metadata: { ...pool.metadata, labels: { tier: 'edge' } } });
    expect(since()).toContain('policy cluster');
    caches.pools.put({ ...pool, metadata: { ...pool.metadata, labels: { tier: 'edge' } } });
    expect(since()).not.toContain('policy cluster');
  });

  it('a pool that has no nodes leaves none behind', () => {
    caches.nodes.put(aNode('in-no-pool'));
    since();
    caches.pools.put({ ...aPool('infra'), metadata: { name: 'infra', generation: 1 } });
    expect(since()).toEqual(['pools infra']);
  });

  it('another stream of worker is one for each pool that inherits it', () => {
    const infra = ['due infra', 'pools infra', 'rendering infra after 700 ms'];
    caches.pools.put(aPool('gpu', { osImageStream: { name: 'own' } }));
    since();
    caches.pools.put(aPool('worker', { osImageStream: { name: 'next' } }));
    expect(since()).toEqual(expect.arrayContaining(infra));
    caches.pools.put(aPool('worker', { osImageStream: { name: 'next' }, paused: true }));
    expect(since().filter((key) => /infra|gpu/.test(key))).toEqual([]);
    caches.pools.delete('worker');
    expect(since().filter((key) => /infra|gpu/.test(key))).toEqual(infra);
  });

  it.each([
    ['another spec', { metadata: { name: 'worker', generation: 2 } }, true],
    ['another configuration that every node runs', { status: { configuration: { name: 'r-2' } } }, true],
    ['other counts', { status: { machineCount: 3 } }, false],
  ])('%s: rendered again: %j %s', (_what, change, renders) => {
    caches.pools.put({ ...aPool('worker'), ...change } as KubernetesObject);
    expect(since()).toEqual(['pools worker', ...(renders ? ['rendering worker after 700 ms'] : [])]);
  });
});

it('pools are rendered again when other sections of storage may change', () => {
  const configuration = (storage: string[]) => ({
    ...object('cluster'),
    spec: { irreconcilableValidationOverrides: { storage } },
  });
  caches.machineConfigurations.put(configuration(['Disks']));
  since();
  caches.machineConfigurations.put(configuration(['Disks']));
  expect(since()).not.toContain('rendering worker');
  caches.machineConfigurations.put(configuration(['Disks', 'Raid']));
  expect(since()).toContain('rendering worker');
});

describe('MachineConfigs', () => {
  it('a rendered config that somebody changed is for its pool alone', () => {
    const rendered = aRenderedConfig('rendered-worker-1');
    const owner = { apiVersion: 'v1', kind: 'MachineConfigPool', name: 'worker', uid: 'u', controller: true };
    caches.machineConfigs.put({
      ...rendered,
      metadata: { ...rendered.metadata, ownerReferences: [owner] },
    });
    expect(since()).toEqual(['pools worker', 'rendering worker']);
  });

  it.each([
    ['no owner', []],
    ['an owner of another kind', [{ kind: 'KubeletConfig', controller: true }]],
    ['a pool that does not control it', [{ kind: 'MachineConfigPool', controller: false }]],
  ])('a config with %s may be selected by any pool', (_what, owners) => {
    const ownerReferences = owners.map((owner) => ({ apiVersion: 'v1', name: 'worker', uid: 'u', ...owner }));
    const config = aRenderedConfig('50-motd');
    caches.machineConfigs.put({ ...config, metadata: { ...config.metadata, ownerReferences } });
    expect(since()).toEqual([
      'pools infra',
      'pools worker',
      'rendering infra after 700 ms',
      'rendering worker after 700 ms',
    ]);
  });
});

it('policies concern every pool, and the object that has them owns what is rendered', () => {
  const policies = ['policy cluster', 'pools infra', 'pools worker'];
  caches.machineConfigurations.put(object('cluster'));
  expect(since()).toEqual([...policies, 'rendering infra', 'rendering worker']);
  caches.machineConfigurations.put(object('cluster'));
  expect(since()).toEqual(policies);
});

it('the layering switch says of every pool whether it waits for an image', () => {
  caches.layeringSwitch.put(object('on-cluster-layering', 'ConfigMap'));
  expect(since()).toEqual(['pools infra', 'pools worker']);
});

it('the keys that images are signed with concern every pool', () => {
  caches.signingKeys.put(object('image-signing-keys', 'ConfigMap'));
  expect(since()).toEqual(['pools infra', 'pools worker']);
});

it('a MachineOSConfig and a build are for their pool', () => {
  caches.machineOSConfigs.put(aMachineOSConfig('worker'));
  expect(since()).toEqual(['pools worker']);
  caches.machineOSBuilds.put(aBuild('worker-1', 'rendered-worker-1'));
  expect(since()).toEqual(['pools worker']);
});

it('what is recorded is for its pool', () => {
  for (const revision of aRecord(aPool('worker'), { config: 'rendered-worker-1' }))
    caches.poolRevisions.put(revision);
  expect(since()).toEqual(['pools worker']);
});

describe('drop-ins of services', () => {
  const SOON = ['service-configs after 1000 ms'];
  const sinceThen = () => [...new Set(services.splice(0))];

  beforeEach(() => {
    sinceThen();
  });

  it.each(['kubeletConfigs', 'containerRuntimeConfigs'] as const)('%s are rendered soon', (name) => {
    caches[name].put(object('any'));
    expect(sinceThen()).toEqual(SOON);
  });

  it('a generated MachineConfig that changes is looked at again', () => {
    const owner = { kind: 'KubeletConfig', name: 'a', uid: 'u', apiVersion: 'v1', controller: true };
    const config = object('99-worker-generated-kubelet');
    caches.machineConfigs.put({ ...config, metadata: { ...config.metadata, ownerReferences: [owner] } });
    expect(sinceThen()).toEqual(SOON);
    caches.machineConfigs.put(object('50-motd'));
    expect(sinceThen()).toEqual([]);
  });

  it('labels of pools and the runtimes of nodes decide, and nothing else of them', () => {
    const pool = aPool('worker');
    const counted: MachineConfigPool = { ...pool, status: { machineCount: 3 } };
    caches.pools.put(counted);
    caches.nodes.put(workerNode('a', { spec: { unschedulable: true } }));
    expect(sinceThen()).toEqual([]);
    caches.pools.put({ ...pool, metadata: { ...pool.metadata, labels: { a: 'b' } } });
    expect(sinceThen()).toEqual(SOON);
    caches.nodes.put(workerNode('a', { status: { nodeInfo: { containerRuntimeVersion: 'cri-o://1' } } }));
    expect(sinceThen()).toEqual(SOON);
    caches.nodes.delete('a');
    expect(sinceThen()).toEqual(SOON);
    caches.pools.delete('worker');
    expect(sinceThen()).toEqual(SOON);
  });
});

it.each(['digestMirrors', 'tagMirrors', 'contentSources', 'imageConfigs', 'osImageStreams'] as const)(
  'several %s that are applied together are one rendering of each pool',
  (name) => {
    caches[name].put(object('any'));
    expect(since()).toEqual([
      'due infra',
      'due worker',
      'pools infra',
      'pools worker',
      'rendering infra after 700 ms',
      'rendering worker after 700 ms',
    ]);
  },
);
