import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { knownStates } from './known-states.ts';

const apiVersion = 'machineconfiguration.openshift.io/v1';
const config = (name: string): MachineConfig => ({
  apiVersion,
  kind: 'MachineConfig',
  metadata: { name },
  spec: {},
});
const node = (pool: string, current: string, baseImage: string): MachineConfigNode => ({
  apiVersion,
  kind: 'MachineConfigNode',
  metadata: { name: `${pool}-${current}-${baseImage}` },
  spec: { node: { name: 'n' }, pool: { name: pool }, configVersion: { desired: 'x' } },
  status: { configVersion: { current, desired: 'x' }, baseImage },
});
const build = (of: string, status: object): MachineOSBuild => ({
  apiVersion,
  kind: 'MachineOSBuild',
  metadata: { name: `worker-${of}` },
  spec: {
    machineConfig: { name: of },
    machineOSConfig: { name: 'worker' },
    renderedImagePushSpec: 'r.io/os/worker:x',
  },
  status: {
    conditions: [
      {
        type: 'Succeeded',
        status: 'True',
        reason: '',
        message: '',
        lastTransitionTime: '2026-06-01T00:00:00Z',
      },
    ],
    ...status,
  },
});
const states = (nodes: MachineConfigNode[], builds: MachineOSBuild[]) =>
  knownStates('worker', nodes, builds, (name) => (name.startsWith('gone') ? undefined : config(name))).map(
    (state) => ({ ...state, config: state.config.metadata.name }),
  );

test('what nodes run and what images make of them, each once; not what can be compared with nothing', () => {
  const nodes = [node('worker', 'a', 'base'), node('worker', 'gone', 'base'), node('infra', 'c', 'base')];
  const builds = [build('a', { baseImage: 'base' }), build('b', { baseImage: 'base' })];
  expect(states(nodes, builds)).toEqual([
    { config: 'a', base: 'base' },
    { config: 'b', base: 'base' },
  ]);
});

test('the images of an index tell what their bases are for, of what nodes run too', () => {
  const instances = [
    { architecture: 'amd64', image: 'i@1', baseImage: 'base-amd64' },
    { architecture: 'arm64', image: 'i@2', baseImage: 'base-arm64' },
  ];
  expect(
    states([node('worker', 'a', 'base-arm64')], [build('b', { baseImage: 'index', instances })]),
  ).toEqual([
    { config: 'a', base: 'base-arm64', architecture: 'arm64' },
    { config: 'b', base: 'base-amd64', architecture: 'amd64' },
    { config: 'b', base: 'base-arm64', architecture: 'arm64' },
  ]);
});
