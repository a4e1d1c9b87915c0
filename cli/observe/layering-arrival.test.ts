import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { type LayeringGoal, layeringArrival } from './layering-arrival.ts';

const GROUP = 'machineconfiguration.openshift.io/v1';
const IMAGE = `r.example.com/os/worker@sha256:${'a'.repeat(64)}`;
const ON: LayeringGoal = { layered: ['worker'], standard: [], clean: false };
const OFF: LayeringGoal = { layered: [], standard: ['worker'], clean: true };

/** A node whose image is to be `desired` and is `current`; undefined: the stock image. */
function node(name: string, desired: string | undefined, current: string | undefined) {
  return machineConfigNode(
    name,
    {
      mode: current === undefined ? 'Standard' : 'Layered',
      configVersion: { current: 'rendered-worker-1', desired: 'rendered-worker-1' },
      ...(current === undefined ? {} : { configImage: { currentImage: current } }),
      conditions: [condition('Updated', 'True')],
    },
    desired === undefined ? {} : { configImage: { desiredImage: desired } },
  );
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

const built = condition('BuildSuccess', 'True');
const updated = condition('Updated', 'True');

describe('switched on', () => {
  test('right after the switch the pool still says Updated of what was before', () => {
    const before = observed({
      pools: [pool([updated])],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(layeringArrival(ON, before)).toEqual({
      kind: 'underway',
      seen: 'worker: 0/1 nodes, its MachineOSConfig is not created yet',
    });
  });

  test('tells what nodes wait for in the words of the pool', () => {
    const message =
      '1 of 2 nodes run rendered-worker-1 as r.example.com/os/worker@sha256:0; b: is being drained';
    const half = observed({
      pools: [pool([condition('Updating', 'True', message, 'NodesUpdating'), built])],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE), node('b', IMAGE, undefined)],
    });
    expect(layeringArrival(ON, half)).toEqual({
      kind: 'underway',
      seen: 'worker: 1/2 nodes, b: is being drained',
    });
  });

  test('has arrived when every node runs its image and the pool says so', () => {
    const all = {
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE)],
      builds: [build],
    };
    expect(layeringArrival(ON, observed({ ...all, pools: [pool([updated, built])] }))).toEqual({
      kind: 'arrived',
    });
    expect(layeringArrival(ON, observed({ ...all, pools: [pool([built])] })).kind).toBe('underway');
  });

  test.each([
    ['Degraded', 'stopped'],
    ['NodesDegraded', 'underway'],
  ])('a pool that is degraded for the reason %s: %s', (reason, kind) => {
    const degraded = observed({
      pools: [pool([condition('Degraded', 'True', 'MachineOSBuild worker-1 failed', reason)])],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(layeringArrival(ON, degraded).kind).toBe(kind);
  });

  test('a paused pool is said to be', () => {
    const paused = observed({
      pools: [pool([], { paused: true })],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(layeringArrival(ON, paused)).toMatchObject({ seen: 'worker: 0/1 nodes, the pool is paused' });
  });
});

describe('switched off', () => {
  const home = { pools: [pool([updated])], machineConfigNodes: [node('a', undefined, undefined)] };

  test('nodes must be back, and what layering made must be gone', () => {
    const away = observed({ ...home, machineConfigNodes: [node('a', undefined, IMAGE)] });
    expect(layeringArrival(OFF, away).kind).toBe('underway');
    expect(layeringArrival(OFF, observed({ ...home, builds: [build] }))).toEqual({
      kind: 'underway',
      seen: 'still to be deleted: 1 image',
    });
    expect(layeringArrival(OFF, observed(home))).toEqual({ kind: 'arrived' });
  });

  test('the images of a pool that an admin layers stay', () => {
    const own = { ...machineOSConfig, metadata: { name: 'infra' } };
    const theirs = { ...build, spec: { ...build.spec, machineOSConfig: { name: 'infra' } } };
    const left = observed({
      ...home,
      machineOSConfigs: [{ ...own, spec: { ...own.spec, machineConfigPool: { name: 'infra' } } }],
      builds: [theirs],
    });
    expect(layeringArrival(OFF, left)).toEqual({ kind: 'arrived' });
  });
});
