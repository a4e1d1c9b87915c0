import { expect, test } from 'vitest';
import type { BuildConditionType, MachineOSBuild } from '../api/machine-os-build.ts';
import { aBuild, aMachineOSConfig, aPool } from '../test/fixtures/objects.ts';
import { condition, observed } from '../test/fixtures/observed-cluster.ts';
import { buildsInProgress } from './build-view.ts';
import type { ObservedCluster } from './observed-cluster.ts';

function build(name: string, config: string, state: BuildConditionType, minute: number): MachineOSBuild {
  const status = { conditions: [condition(state, 'True', 'no such package')] };
  return aBuild(name, config, { at: `2026-11-20T10:0${minute}:00Z`, status });
}

const failed = build('b', 'rendered-worker-2', 'Failed', 2);
const before = build('a', 'rendered-worker-1', 'Succeeded', 1);

test.each<
  [
    what: string,
    target: string | undefined,
    named: string | undefined,
    builds: readonly MachineOSBuild[],
    shown: readonly string[],
  ]
>([
  ['is of the target', 'rendered-worker-2', undefined, [before, failed], ['b']],
  ['is the one that the builder names', 'rendered-worker-2', 'b', [before, failed], ['b']],
  ['is of a target that the pool no longer has', 'rendered-worker-1', undefined, [before, failed], []],
  [
    'is of a target that is being built by now',
    'rendered-worker-3',
    undefined,
    [before, failed, build('c', 'rendered-worker-3', 'Building', 3)],
    ['c'],
  ],
  [
    'was followed by one of the same target that succeeded',
    'rendered-worker-2',
    undefined,
    [failed, build('c', 'rendered-worker-2', 'Succeeded', 3)],
    [],
  ],
  [
    'is the newest, and the builder went back to one before it',
    'rendered-worker-2',
    'a',
    [build('a', 'rendered-worker-2', 'Succeeded', 1), failed],
    [],
  ],
  ['is of a pool of which no target is known', undefined, undefined, [failed], ['b']],
])('a build that failed and %s', (_, target, named, builds, shown) => {
  const cluster: Partial<ObservedCluster> = {
    pools: [
      aPool('worker', { configuration: target === undefined ? undefined : { name: target } } as object),
    ],
    machineOSConfigs: [aMachineOSConfig('worker', named)],
    builds,
  };
  expect(buildsInProgress(observed(cluster)).map(({ name }) => name)).toEqual(shown);
});

test('a build that failed, once its pool is in standard mode', () => {
  const pools = [aPool('worker', { configuration: { name: 'rendered-worker-2' } })];
  expect(buildsInProgress(observed({ pools, builds: [failed] }))).toEqual([]);
});
