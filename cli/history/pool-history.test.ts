import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { condition, machineConfigNode, pool } from '../../test/fixtures/observed-cluster.ts';
import { poolHistory, rollbackHistory } from './pool-history.ts';

const GROUP = 'machineconfiguration.openshift.io/v1';
const role = 'machineconfiguration.openshift.io/role';
const spec = { machineConfigSelector: { matchLabels: { [role]: 'worker' } } };
const worker = { ...pool([]), metadata: { name: 'worker', uid: 'w' }, spec };
const image = (digit: string) => `r.example.com/os/worker@sha256:${digit.repeat(64)}`;

function machineConfig(name: string, files: Record<string, string>): MachineConfig {
  return {
    apiVersion: GROUP,
    kind: 'MachineConfig',
    metadata: { name, labels: { [role]: 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            contents: { source: `data:,${text}` },
          })),
        },
      },
    },
  };
}

/** @returns what an operator would have rendered from them on that day. */
function rendered(configs: readonly MachineConfig[], day: number): MachineConfig {
  const rendering = renderPool({ pool: worker, configs, controllerVersion: 'test' });
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
  const { metadata } = rendering.rendered;
  return {
    ...rendering.rendered,
    metadata: { ...metadata, creationTimestamp: `2026-11-${day}T10:00:00Z` },
  };
}

function build(name: string, config: MachineConfig, day: number, outcome: object): MachineOSBuild {
  return {
    apiVersion: GROUP,
    kind: 'MachineOSBuild',
    metadata: { name },
    spec: {
      machineConfig: { name: config.metadata.name },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: 'r.example.com/os/worker:latest',
    },
    status: { buildEnd: `2026-11-${day}T10:01:00Z`, ...outcome },
  };
}

const chrony = machineConfig('20-chrony', { '/etc/chrony.conf': 'b' });
const sysctl = machineConfig('30-sysctl', { '/etc/sysctl.d/a.conf': 'a' });
const first = rendered([machineConfig('20-chrony', { '/etc/chrony.conf': 'a' })], 11);
const second = rendered([chrony], 12);
const third = rendered([chrony, sysctl], 13);
const succeeded = (digit: string, way = 'Append') => ({
  conditions: [condition('Succeeded', 'True')],
  digestedImagePushSpec: image(digit),
  builder: { imageBuilderType: way },
});

test('a layered pool has an entry for each image, with its changes and the MachineConfigs that set them now', () => {
  const entries = poolHistory({
    name: 'worker',
    pool: { ...worker, spec: { ...spec, configuration: { name: third.metadata.name } } },
    machineConfigs: [chrony, sysctl, first, second, third],
    builds: [
      build('worker-2', second, 12, succeeded('2')),
      build('worker-2-relabelled', second, 13, succeeded('3', 'Relabel')),
      build('worker-3', third, 14, { conditions: [condition('Failed', 'True', 'no such registry')] }),
    ],
    machineConfigNodes: [
      machineConfigNode('a', { configImage: { currentImage: image('2') } }),
      machineConfigNode('b', { configVersion: { current: first.metadata.name, desired: '' } }),
    ],
    poolRevisions: undefined,
  });
  expect(entries).toMatchObject([
    {
      build: 'worker-3',
      result: 'Failed',
      message: 'no such registry',
      changes: [{ subject: '/etc/sysctl.d/a.conf', change: 'added', machineConfigs: ['30-sysctl'] }],
    },
    { build: 'worker-2-relabelled', way: 'Relabel', changes: [], nodes: 0 },
    {
      build: 'worker-2',
      image: image('2'),
      nodes: 1,
      changes: [{ subject: '/etc/chrony.conf', change: 'changed', machineConfigs: ['20-chrony'] }],
    },
    { config: first.metadata.name, way: 'Render', nodes: 1 },
  ]);
  // The config before the first one is unknown.
  expect(entries.at(-1)?.changes).toBeUndefined();
});

test('without a deleted config the changes are unknown', () => {
  const entries = poolHistory({
    name: 'worker',
    pool: worker,
    machineConfigs: [chrony, second],
    builds: [build('worker-1', first, 11, succeeded('1')), build('worker-2', second, 12, succeeded('2'))],
    machineConfigNodes: [],
    poolRevisions: [],
  });
  expect(entries.map(({ build, changes }) => [build, changes])).toEqual([
    ['worker-2', undefined],
    ['worker-1', undefined],
  ]);
});

/** @returns what the operator recorded of a target. */
function assigned(
  revision: number,
  config: MachineConfig,
  digit?: string,
  of = 'worker',
  uid = 'w',
): PoolRevision {
  return {
    apiVersion: 'shale.dev/v1',
    kind: 'PoolRevision',
    metadata: {
      name: `${of}-${uid}-${revision}`,
      creationTimestamp: `2026-11-2${revision}T10:00:00Z`,
      ownerReferences: [{ apiVersion: GROUP, kind: 'MachineConfigPool', name: of, uid }],
    },
    spec: {
      machineConfigPool: { name: of },
      revision,
      machineConfig: { name: config.metadata.name },
      ...(digit === undefined ? {} : { image: parseDigestedPullspec(image(digit)) }),
    },
  };
}

test('each revision that the operator recorded is an entry, in the order in which they were assigned', () => {
  const entries = poolHistory({
    name: 'worker',
    pool: worker,
    machineConfigs: [chrony, sysctl, first, second, third],
    // The build of the last one ended first, and the one of revision 3 was deleted.
    builds: [build('worker-2', second, 12, succeeded('2')), build('worker-4', third, 11, succeeded('4'))],
    machineConfigNodes: [machineConfigNode('a', { configImage: { currentImage: image('3') } })],
    poolRevisions: [
      assigned(1, first),
      assigned(4, third, '4'),
      assigned(2, second, '2'),
      assigned(3, second, '3'),
      assigned(5, second, '2', 'infra', 'i'),
    ],
  });
  expect(
    entries.map(({ config, revision, nodes, changes }) => [
      config,
      revision?.number,
      nodes,
      changes?.map(({ subject }) => subject),
    ]),
  ).toEqual([
    [third.metadata.name, 4, 0, ['/etc/sysctl.d/a.conf']],
    [second.metadata.name, 3, 1, []],
    [second.metadata.name, 2, 0, ['/etc/chrony.conf']],
    [first.metadata.name, 1, 0, undefined],
  ]);
});

test('what an earlier pool of the name was assigned stays, and so does the history of a deleted pool', () => {
  const given = {
    name: 'worker',
    machineConfigs: [first, second],
    builds: [],
    machineConfigNodes: [],
    poolRevisions: [assigned(1, first, undefined, 'worker', 'earlier'), assigned(2, second)],
  };
  const names = [second.metadata.name, first.metadata.name];
  const existing = poolHistory({ ...given, pool: worker });
  expect(existing.map(({ config }) => config)).toEqual(names);
  // A rollback can't go to it.
  expect(existing.map(({ revision }) => revision?.number)).toEqual([2, undefined]);
  const relabelled = assigned(3, first, '3', 'worker', 'earlier');
  const offered = rollbackHistory({
    ...given,
    poolRevisions: [...given.poolRevisions, relabelled],
    pool: worker,
  });
  expect(offered.map(({ image: its }) => its)).not.toContain(relabelled.spec.image);
  expect(poolHistory({ ...given, pool: undefined }).map(({ config }) => config)).toEqual(names);
});
