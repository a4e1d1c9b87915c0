import { expect, test } from 'vitest';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { builderTargets, nodeTargets } from './registry-targets.ts';

const IMAGE = `r.example.com/os/worker@sha256:${'1'.repeat(64)}`;
const CONFIG: MachineOSConfig = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: {
    machineConfigPool: { name: 'worker' },
    renderedImagePushSpec: 'r.example.com/os/worker:latest',
    renderedImagePushSecret: { name: 'push' },
    baseImagePullSecret: { name: 'base' },
    baseImage: 'r.example.com/stock:1',
  },
};
const LAYERED = {
  pool: 'worker',
  secrets: ['base', 'push'],
  push: 'r.example.com/os/worker:latest',
  pull: 'r.example.com/stock:1',
};

test('the builder reads the base image and pushes; a MachineConfig overrides the base image of a MachineOSConfig', () => {
  const cluster = observed({ machineOSConfigs: [CONFIG], pools: [pool([])] });
  expect(builderTargets(cluster, new Map())).toEqual([LAYERED]);
  const named = builderTargets(cluster, new Map([['worker', 'r.example.com/stock:2']]));
  expect(named).toEqual([{ ...LAYERED, pull: 'r.example.com/stock:2' }]);
});

test('flags for enable apply to pools without images', () => {
  const planned = {
    imageRepository: 'other.example.com/{pool}',
    pushSecret: 'p',
    baseImage: 'b.example.com/os:1',
  };
  const cluster = observed({ machineOSConfigs: [CONFIG], pools: [pool([])] });
  expect(builderTargets(cluster, new Map(), planned)).toEqual([LAYERED]);
  expect(builderTargets(observed({ pools: [pool([])] }), new Map(), planned)).toEqual([
    { pool: 'worker', secrets: ['p'], push: 'other.example.com/worker:latest', pull: 'b.example.com/os:1' },
  ]);
  expect(builderTargets(observed({ pools: [pool([])] }), new Map(), { pushSecret: 'p' })).toEqual([]);
});

test('a node pulls its target image, or checks the repository that will contain it', () => {
  const none = observed({ machineConfigNodes: [machineConfigNode('a')] });
  expect(nodeTargets([LAYERED], none, [])).toEqual([
    { pool: 'worker', secrets: [], pull: LAYERED.push, mayBeMissing: true },
  ]);
  const wanting = machineConfigNode('a', undefined, { configImage: { desiredImage: IMAGE } });
  expect(nodeTargets([LAYERED], observed({ machineConfigNodes: [wanting] }), ['node-pull-secret'])).toEqual([
    { pool: 'worker', secrets: ['node-pull-secret'], pull: IMAGE },
  ]);
});
