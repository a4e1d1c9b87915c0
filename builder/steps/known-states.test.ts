import { expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { aBuild, aMachineConfigNode, aRenderedConfig, condition } from '../../test/fixtures/objects.ts';
import { knownStates } from './known-states.ts';

const config = (name: string) => aRenderedConfig(name);
const node = (pool: string, current: string, baseImage: string) =>
  aMachineConfigNode(
    `${pool}-${current}-${baseImage}`,
    { pool: { name: pool } },
    { configVersion: { current, desired: 'x' }, baseImage },
  );
const build = (of: string, status: object) =>
  aBuild(`worker-${of}`, of, { status: { conditions: [condition('Succeeded')], ...status } });
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
