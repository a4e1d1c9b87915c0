import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { type LayeringGoal, layeringArrival } from './layering-arrival.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const GROUP = 'machineconfiguration.openshift.io/v1';
const IMAGE = `r.example.com/os/worker@sha256:${'a'.repeat(64)}`;
const ON: LayeringGoal = { layered: ['worker'], standard: [], clean: false };
const OFF: LayeringGoal = { layered: [], standard: ['worker'], clean: true };

/** A node with a desired and a current image; undefined: the stock image. */
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
  test('a pool without its MachineOSConfig is not there, although it still reports Updated', () => {
    const before = observed({
      pools: [pool([updated])],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(layeringArrival(ON, before, NOW)).toEqual({
      kind: 'underway',
      progress: 'worker: 0/1 nodes, its MachineOSConfig is not created yet',
    });
  });

  test('the progress contains what nodes wait for, from the condition of the pool', () => {
    const message =
      '1 of 2 nodes run rendered-worker-1 as r.example.com/os/worker@sha256:0; b: is being drained';
    const half = observed({
      pools: [
        pool([condition('Updating', 'True', message, 'NodesUpdating'), built], {
          machineCount: 2,
          updatedMachineCount: 1,
        }),
      ],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE), node('b', IMAGE, undefined)],
    });
    expect(layeringArrival(ON, half, NOW)).toEqual({
      kind: 'underway',
      progress: `worker: 1/2 nodes; the operator reports: ${message}`,
    });
  });

  test('the count is that of the pool whose sentence is beside it', () => {
    const counts = { machineCount: 2, updatedMachineCount: 0 };
    const message = '0 of 2 nodes run rendered-worker-1; a: verifying';
    const behind = observed({
      pools: [pool([condition('Updating', 'True', message, 'NodesUpdating'), built], counts)],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE), node('b', IMAGE, undefined)],
    });
    expect(layeringArrival(ON, behind, NOW)).toEqual({
      kind: 'underway',
      progress: `worker: 0/2 nodes; the operator reports: ${message}`,
    });
  });

  test('has not arrived while the status is about the spec before the last change', () => {
    const reported = pool([updated, built], { observedGeneration: 1 });
    const changed = { ...reported, metadata: { ...reported.metadata, generation: 2 } };
    const machineConfigNodes = [node('a', IMAGE, IMAGE)];
    const stale = observed({ pools: [changed], machineOSConfigs: [machineOSConfig], machineConfigNodes });
    expect(layeringArrival(ON, stale, NOW)).toEqual({
      kind: 'underway',
      progress: 'worker: 1/1 nodes, the pool is not Updated yet',
    });
  });

  test('has arrived when every node runs its image and the pool is Updated', () => {
    const all = {
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', IMAGE, IMAGE)],
      builds: [build],
    };
    expect(layeringArrival(ON, observed({ ...all, pools: [pool([updated, built])] }), NOW)).toEqual({
      kind: 'arrived',
    });
    expect(layeringArrival(ON, observed({ ...all, pools: [pool([built])] }), NOW).kind).toBe('underway');
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
    expect(layeringArrival(ON, degraded, NOW).kind).toBe(kind);
  });

  test('stops at a pool that is paused', () => {
    const paused = observed({
      pools: [pool([], { paused: true })],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [node('a', undefined, undefined)],
    });
    expect(layeringArrival(ON, paused, NOW)).toMatchObject({
      kind: 'stopped',
      why: expect.stringContaining('pool worker: 0/1 nodes, the pool is paused'),
    });
  });
});

describe('switched off', () => {
  const home = { pools: [pool([updated])], machineConfigNodes: [node('a', undefined, undefined)] };

  test('has arrived when nodes run the stock image and what layering created is deleted', () => {
    const away = observed({ ...home, machineConfigNodes: [node('a', undefined, IMAGE)] });
    expect(layeringArrival(OFF, away, NOW).kind).toBe('underway');
    expect(layeringArrival(OFF, observed({ ...home, builds: [build] }), NOW)).toEqual({
      kind: 'underway',
      progress: 'still to be deleted: 1 image',
    });
    expect(layeringArrival(OFF, observed(home), NOW)).toEqual({ kind: 'arrived' });
  });

  test('does not wait for images of a MachineOSConfig that an admin created', () => {
    const own = { ...machineOSConfig, metadata: { name: 'infra' } };
    const theirs = { ...build, spec: { ...build.spec, machineOSConfig: { name: 'infra' } } };
    const left = observed({
      ...home,
      machineOSConfigs: [{ ...own, spec: { ...own.spec, machineConfigPool: { name: 'infra' } } }],
      builds: [theirs],
    });
    expect(layeringArrival(OFF, left, NOW)).toEqual({ kind: 'arrived' });
  });
});
