import { describe, expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';
import { arrivalOf, type LayeringGoal } from './arrival.ts';

const GROUP = 'machineconfiguration.openshift.io/v1';
const IMAGE = `r.example.com/os/worker@sha256:${'a'.repeat(64)}`;
const ON: LayeringGoal = { layered: ['worker'], standard: [], clean: false };
const OFF: LayeringGoal = { layered: [], standard: ['worker'], clean: true };

const condition = (type: string, status: 'True' | 'False', reason = 'Test', message = '') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-11-20T10:00:00Z',
});

function pool(conditions: ReturnType<typeof condition>[], paused = false): MachineConfigPool {
  return {
    apiVersion: GROUP,
    kind: 'MachineConfigPool',
    metadata: { name: 'worker' },
    spec: { paused },
    status: { conditions },
  };
}

function node(name: string, desired: string | undefined, current: string | undefined): MachineConfigNode {
  return {
    apiVersion: GROUP,
    kind: 'MachineConfigNode',
    metadata: { name },
    spec: {
      node: { name },
      pool: { name: 'worker' },
      configVersion: { desired: 'rendered-worker-1' },
      ...(desired === undefined ? {} : { configImage: { desiredImage: desired } }),
    },
    status: {
      mode: current === undefined ? 'Standard' : 'Layered',
      configVersion: { current: 'rendered-worker-1', desired: 'rendered-worker-1' },
      ...(current === undefined ? {} : { configImage: { currentImage: current } }),
      conditions: [condition('Updated', 'True')],
    },
  };
}

const machineOSConfig: MachineOSConfig = {
  apiVersion: GROUP,
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: 'r.example.com/os/worker:latest' },
};
const build: MachineOSBuild = {
  apiVersion: GROUP,
  kind: 'MachineOSBuild',
  metadata: { name: 'worker-1' },
  spec: {
    machineConfig: { name: 'rendered-worker-1' },
    machineOSConfig: { name: 'worker' },
    renderedImagePushSpec: 'r.example.com/os/worker:latest',
  },
};

function seen(more: Partial<ObservedCluster>): ObservedCluster {
  return {
    switchMap: undefined,
    operator: undefined,
    builder: undefined,
    pools: [],
    machineOSConfigs: [],
    builds: [],
    machineConfigNodes: [],
    nodes: [],
    leases: [],
    inMaintenance: new Set(),
    ...more,
  };
}

const built = condition('BuildSuccess', 'True');
const updated = condition('Updated', 'True');

describe('switched on', () => {
  test('right after the switch the pool still says Updated of what was before', () => {
    const before = seen({ pools: [pool([updated])], machineConfigNodes: [node('a', undefined, undefined)] });
    expect(arrivalOf(ON, before)).toEqual({
      kind: 'underway',
      seen: 'worker: 0/1 nodes, it has no MachineOSConfig yet',
    });
  });

  test('tells what nodes wait for in the words of the pool', () => {
    const message =
      '1 of 2 nodes run rendered-worker-1 as r.example.com/os/worker@sha256:0; b: is being drained';
    const half = seen({
      pools: [pool([condition('Updating', 'True', 'NodesUpdating', message), built])],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE), node('b', IMAGE, undefined)],
    });
    expect(arrivalOf(ON, half)).toEqual({ kind: 'underway', seen: 'worker: 1/2 nodes, b: is being drained' });
  });

  test('has arrived when every node runs its image and the pool says so', () => {
    const all = {
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE)],
      builds: [build],
    };
    expect(arrivalOf(ON, seen({ ...all, pools: [pool([updated, built])] }))).toEqual({ kind: 'arrived' });
    expect(arrivalOf(ON, seen({ ...all, pools: [pool([built])] })).kind).toBe('underway');
  });

  test.each([
    ['Degraded', 'stopped'],
    ['NodesDegraded', 'underway'],
  ])('a pool that is degraded for the reason %s: %s', (reason, kind) => {
    const degraded = seen({
      pools: [pool([condition('Degraded', 'True', reason, 'MachineOSBuild worker-1 failed')])],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(arrivalOf(ON, degraded).kind).toBe(kind);
  });

  test('a paused pool is said to be', () => {
    const paused = seen({
      pools: [pool([], true)],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(arrivalOf(ON, paused)).toMatchObject({ seen: 'worker: 0/1 nodes, the pool is paused' });
  });
});

describe('switched off', () => {
  const home = { pools: [pool([updated])], machineConfigNodes: [node('a', undefined, undefined)] };

  test('nodes must be back, and what layering made must be gone', () => {
    const away = seen({ ...home, machineConfigNodes: [node('a', undefined, IMAGE)] });
    expect(arrivalOf(OFF, away).kind).toBe('underway');
    expect(arrivalOf(OFF, seen({ ...home, builds: [build] }))).toEqual({
      kind: 'underway',
      seen: 'still there: 1 image',
    });
    expect(arrivalOf(OFF, seen(home))).toEqual({ kind: 'arrived' });
  });

  test('the images of a pool that an admin layers stay', () => {
    const own = { ...machineOSConfig, metadata: { name: 'infra' } };
    const theirs = { ...build, spec: { ...build.spec, machineOSConfig: { name: 'infra' } } };
    const left = seen({
      ...home,
      machineOSConfigs: [{ ...own, spec: { ...own.spec, machineConfigPool: { name: 'infra' } } }],
      builds: [theirs],
    });
    expect(arrivalOf(OFF, left)).toEqual({ kind: 'arrived' });
  });
});
