import { beforeEach, describe, expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Caches } from '../rollout/caches.ts';
import { Membership } from '../rollout/pools/membership.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aNode,
  aPool,
  aRecord,
  aRenderedConfig,
  condition,
} from '../test/fixtures/objects.ts';
import { SteppedWatch } from '../test/fixtures/stepped-watch.ts';
import { routeEvents } from './observe.ts';

const RENDER_DELAY = 700;
const ANNOTATIONS_DELAY = 2_000;

const CACHES = [
  'nodes',
  'leases',
  'registryCAs',
  'kubeletCA',
  'signingKeys',
  'osImageStreams',
  'pullSecret',
  'pools',
  'machineConfigs',
  'machineConfigNodes',
  'machineConfigurations',
  'machineOSConfigs',
  'machineOSBuilds',
  'poolRevisions',
  'kubeletConfigs',
  'containerRuntimeConfigs',
  'pinnedImageSets',
  'digestMirrors',
  'tagMirrors',
  'contentSources',
  'imageConfigs',
] as const satisfies readonly (keyof Caches)[];
type AnyWatch = SteppedWatch<KubernetesObject>;

let caches: Record<(typeof CACHES)[number], AnyWatch>;
let queued: string[];
/** Keys of the controller of services, for which much happens that is also for others. */
let services: string[];
/** Nodes of the controller of pinned images, for which much happens that is also for others. */
let pinned: string[];
let warnings: string[];

/** Keys as they were queued since the last call, in alphabetical order: `queue key`, with the delay where there is one. */
function since(): string[] {
  const keys = [...new Set(queued)].toSorted();
  queued.length = 0;
  return keys;
}

function object(name: string, kind = 'Any'): KubernetesObject {
  return { apiVersion: 'v1', kind, metadata: { name } };
}

function workerNode(name: string, change: Partial<Pick<Node, 'metadata' | 'spec' | 'status'>> = {}): Node {
  const labels = { 'node-role.kubernetes.io/worker': '' };
  return aNode(name, { ...change, metadata: { name, labels, ...change.metadata } });
}

const labelled = (...roles: string[]) => ({
  labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, ''])),
});

function queue(name: string) {
  return {
    add: (key: string) => void queued.push(`${name} ${key}`),
    addAfter: (key: string, ms: number) => void queued.push(`${name} ${key} after ${ms} ms`),
  };
}

beforeEach(() => {
  queued = [];
  services = [];
  pinned = [];
  warnings = [];
  caches = Object.fromEntries(CACHES.map((name) => [name, new SteppedWatch()])) as typeof caches;
  routeEvents({
    caches: caches as unknown as Caches,
    membership: new Membership(),
    renderings: { mark: (pool) => void queued.push(`due ${pool}`) },
    queues: {
      pools: queue('pools'),
      policy: queue('policy'),
      certificates: queue('certificates'),
      departed: queue('departed'),
      tries: queue('tries'),
      pinnedImages: { add: (key) => void pinned.push(key) },
      annotations: queue('annotations'),
      rendering: queue('rendering'),
      services: { addAfter: (key, ms) => void services.push(`${key} after ${ms} ms`) },
    },
    renderDelayMs: RENDER_DELAY,
    events: {
      normal: () => undefined,
      warning: (about, reason, message) => void warnings.push(`${about.metadata.name} ${reason}: ${message}`),
    },
  });
  caches.pools.put(aPool('worker'));
  caches.pools.put(aPool('infra'));
  caches.nodes.put(workerNode('a'));
  since();
});

describe('pools', () => {
  it('a new pool is looked at and rendered at once', () => {
    caches.pools.put(aPool('gpu'));
    expect(since()).toEqual(['policy cluster', 'pools gpu', 'rendering gpu']);
  });

  it('a changed pool is for those that depend on it', () => {
    const { metadata, ...gpu } = aPool('gpu');
    caches.pools.put({
      ...gpu,
      metadata: { ...metadata, annotations: { [annotations.dependsOn]: 'worker' } },
    });
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

  it.each([
    ['another spec', { metadata: { name: 'worker', generation: 2 } }, true],
    ['another configuration that every node runs', { status: { configuration: { name: 'r-2' } } }, true],
    ['other counts', { status: { machineCount: 3 } }, false],
  ])('%s: rendered again: %j %s', (_what, change, renders) => {
    caches.pools.put({ ...aPool('worker'), ...change } as KubernetesObject);
    expect(since()).toEqual(['pools worker', ...(renders ? ['rendering worker after 700 ms'] : [])]);
  });
});

describe('nodes', () => {
  const changes: [string, Parameters<typeof workerNode>[1]][] = [
    ['another object of the same name', { metadata: { name: 'a', uid: 'uid-other' } }],
    ['an annotation', { metadata: { name: 'a', annotations: { [annotations.poweredOff]: '{}' } } }],
    ['its deletion', { metadata: { name: 'a', deletionTimestamp: '2026-06-01T00:00:00Z' } }],
    ['a cordon', { spec: { unschedulable: true } }],
    ['a taint', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }],
    ['Ready no longer', { status: { conditions: [condition('Ready', 'False')] } }],
    [
      'Ready again',
      { status: { conditions: [{ ...condition('Ready'), lastTransitionTime: '2026-06-01T00:00:00Z' }] } },
    ],
    ['another boot', { status: { conditions: [condition('Ready')], nodeInfo: { bootID: '2' } } }],
    [
      'its architecture',
      { status: { conditions: [condition('Ready')], nodeInfo: { architecture: 'arm64' } } },
    ],
  ];
  it.each(changes)('%s is for its pool and for its annotations', (_what, change) => {
    caches.nodes.put(
      workerNode('a', { ...change, metadata: { uid: 'uid-a', name: 'a', ...change?.metadata } }),
    );
    expect(since()).toEqual([`annotations a after ${ANNOTATIONS_DELAY} ms`, 'pools worker']);
  });

  it("a kubelet's heartbeat is for nobody", () => {
    const { status } = workerNode('a');
    const conditions = [...(status?.conditions ?? []), condition('DiskPressure', 'False')];
    caches.nodes.put(workerNode('a', { status: { conditions } }));
    expect(since()).toEqual([]);
  });

  it('a node that moves is for both pools', () => {
    caches.nodes.put(workerNode('a', { metadata: { name: 'a', ...labelled('infra') } }));
    expect(since()).toEqual([`annotations a after ${ANNOTATIONS_DELAY} ms`, 'pools infra', 'pools worker']);
  });

  it('a node in no pool is looked after by the controller of such nodes', () => {
    caches.nodes.put(aNode('a'));
    expect(since()).toEqual([`annotations a after ${ANNOTATIONS_DELAY} ms`, 'departed a', 'pools worker']);
  });

  it('a deleted node is for its pool and for what was left on it', () => {
    caches.nodes.delete('a');
    expect(since()).toEqual(['departed a', 'pools worker']);
  });

  it('two pools that claim a node are reported once, and again when others do', () => {
    const conflict = (...roles: string[]) =>
      workerNode('a', { metadata: { name: 'a', ...labelled(...roles) } });
    caches.pools.put(aPool('gpu'));
    caches.nodes.put(conflict('infra', 'gpu'));
    expect(warnings).toEqual([expect.stringMatching(/^a PoolConflict: .*gpu.*infra|infra.*gpu/)]);
    const { metadata } = conflict('infra', 'gpu');
    caches.nodes.put(workerNode('a', { metadata, spec: { unschedulable: true } }));
    expect(warnings).toHaveLength(1);
    caches.nodes.put(conflict('gpu'));
    caches.nodes.put(conflict('infra', 'gpu'));
    expect(warnings).toHaveLength(2);
    caches.nodes.delete('a');
    caches.nodes.put(conflict('infra', 'gpu'));
    expect(warnings).toHaveLength(3);
  });

  it('a node that a new pool claims, too, is reported, without a change of the node', () => {
    const both = { metadata: { name: 'a', ...labelled('infra', 'gpu') } };
    caches.nodes.put(workerNode('a', both));
    expect(warnings).toEqual([]);
    caches.pools.put(aPool('gpu'));
    expect(warnings).toEqual([expect.stringMatching(/^a PoolConflict: .*(gpu.*infra|infra.*gpu)/)]);
    expect(since()).toContain('departed a');
    caches.pools.delete('gpu');
    caches.pools.put(aPool('gpu'));
    expect(warnings).toHaveLength(2);
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

describe('MachineConfigNodes', () => {
  it("a daemon's report is for the node's pool, its certificates and its annotations", () => {
    caches.machineConfigNodes.put(aMachineConfigNode('a'));
    expect(since()).toEqual([
      `annotations a after ${ANNOTATIONS_DELAY} ms`,
      'certificates a',
      'pools worker',
    ]);
  });

  it('one whose node is in no pool is for the pool that it names, and for what was left on the node', () => {
    caches.machineConfigNodes.put(aMachineConfigNode('gone', { pool: { name: 'infra' } }));
    expect(since()).toEqual([
      `annotations gone after ${ANNOTATIONS_DELAY} ms`,
      'certificates gone',
      'departed gone',
      'pools infra',
    ]);
  });
});

it('a node lease is for the pool and the annotations of its node; one of a node in no pool for what was left there', () => {
  caches.leases.put(object('node-a', 'Lease'));
  expect(since()).toEqual([`annotations a after ${ANNOTATIONS_DELAY} ms`, 'pools worker']);
  caches.leases.put(object('node-b', 'Lease'));
  expect(since()).toEqual([`annotations b after ${ANNOTATIONS_DELAY} ms`, 'departed b']);
  caches.leases.delete('node-a');
  expect(since()).toEqual([`annotations a after ${ANNOTATIONS_DELAY} ms`, 'pools worker']);
  caches.leases.put(object('kube-scheduler', 'Lease'));
  expect(since()).toEqual([]);
});

it('policies concern every pool', () => {
  caches.machineConfigurations.put(object('cluster'));
  expect(since()).toEqual(['policy cluster', 'pools infra', 'pools worker']);
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

it.each(['registryCAs', 'kubeletCA', 'pullSecret'] as const)('%s are for every node', (name) => {
  caches.machineConfigNodes.put(aMachineConfigNode('a'));
  caches.machineConfigNodes.put(aMachineConfigNode('b'));
  since();
  caches[name].put(object('any'));
  expect(since()).toEqual(['certificates a', 'certificates b']);
});

describe('images that nodes keep', () => {
  const sinceThen = () => [...new Set(pinned.splice(0))].toSorted();

  beforeEach(() => {
    caches.machineConfigNodes.put(aMachineConfigNode('a'));
    caches.machineConfigNodes.put(aMachineConfigNode('b', { pool: { name: 'infra' } }));
    sinceThen();
  });

  it('a PinnedImageSet may be for every node', () => {
    caches.pinnedImageSets.put(object('apps', 'PinnedImageSet'));
    expect(sinceThen()).toEqual(['a', 'b']);
  });

  it('a pool is for its nodes, if it names or selects other sets', () => {
    caches.pools.put(aPool('worker', { pinnedImageSets: [{ name: 'apps' }] }));
    expect(sinceThen()).toEqual(['a']);
    caches.pools.put(aPool('worker', { pinnedImageSets: [{ name: 'apps' }], paused: true }));
    expect(sinceThen()).toEqual([]);
    caches.pools.delete('worker');
    expect(sinceThen()).toEqual(['a']);
  });

  it('a node is for itself, if it has another runtime', () => {
    const nodeInfo = { containerRuntimeVersion: 'cri-o://1.34.1' };
    caches.nodes.put(workerNode('a', { status: { nodeInfo } }));
    expect(sinceThen()).toEqual(['a']);
    caches.nodes.put(workerNode('a', { status: { nodeInfo }, spec: { unschedulable: true } }));
    expect(sinceThen()).toEqual([]);
  });
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
