import { beforeEach, describe, expect, it } from 'vitest';
import { annotations } from '../api/names.ts';
import { aMachineConfigNode, aNode, aPool, condition } from '../test/fixtures/objects.ts';
import {
  labelled,
  object,
  type RoutedEvents,
  routedEvents,
  workerNode,
} from '../test/fixtures/routed-events.ts';

const ANNOTATIONS_DELAY = 2_000;

let caches: RoutedEvents['caches'];
let since: RoutedEvents['since'];
let pinned: RoutedEvents['pinned'];
let warnings: RoutedEvents['warnings'];

beforeEach(() => {
  ({ caches, since, pinned, warnings } = routedEvents());
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

describe('MachineConfigNodes', () => {
  it("a daemon's report is for the node's pool, its certificates and its annotations", () => {
    caches.machineConfigNodes.put(aMachineConfigNode('a'));
    expect(since()).toEqual([
      `annotations a after ${ANNOTATIONS_DELAY} ms`,
      'certificates a',
      'pools worker',
    ]);
  });

  it('one with a grant may be finished, and so may its node when it changes', () => {
    const grant = { level: 'Live' as const, config: 'rendered-worker-1', leaseHolder: 'shale-operator' };
    caches.machineConfigNodes.put(aMachineConfigNode('a', { grant }));
    expect(since()).toContain('finish a');
    caches.nodes.put(workerNode('a', { spec: { unschedulable: true } }));
    expect(since()).toContain('finish a');
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

it('a lease, and a node that is or was switched off, is for who holds the leases of such nodes', () => {
  const { caches: all, poweredOff } = routedEvents();
  const off = { name: 'a', annotations: { [annotations.poweredOff]: '{}' } };
  poweredOff.splice(0);
  all.nodes.put(workerNode('a', { spec: { unschedulable: true } }));
  expect(poweredOff.splice(0)).toEqual([]);
  all.nodes.put(workerNode('a', { metadata: off }));
  expect(poweredOff.splice(0)).toEqual(['a']);
  all.nodes.put(workerNode('a'));
  expect(poweredOff.splice(0)).toEqual(['a']);
  all.leases.put(object('node-b', 'Lease'));
  all.leases.put(object('kube-scheduler', 'Lease'));
  expect(poweredOff.splice(0)).toEqual(['b']);
});

it('a node that is cordoned, and flagged then, is for what reports the drains of maintenances', () => {
  const { caches: all, maintenanceDrains } = routedEvents();
  const cordoned = { spec: { unschedulable: true } };
  const flag = { name: 'a', annotations: { [annotations.plannedMaintenance]: '{}' } };
  const put = (change: Parameters<typeof workerNode>[1]) => {
    all.nodes.put(workerNode('a', change));
    return maintenanceDrains.splice(0);
  };
  expect(put({ metadata: flag })).toEqual([]);
  expect(put({ metadata: flag, ...cordoned })).toEqual(['a']);
  expect(put({ metadata: flag, ...cordoned, status: { conditions: [] } })).toEqual([]);
  expect(put(cordoned)).toEqual(['a']);
  expect(put({})).toEqual(['a']);
  expect(put({ status: { conditions: [] } })).toEqual([]);
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
