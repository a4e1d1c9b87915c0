import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { condition, machineConfigNode, pool } from '../../test/fixtures/observed-cluster.ts';
import { poolHistory } from './pool-history.ts';

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
  expect(entries.at(-1)).not.toHaveProperty('changes');
});

test('without a deleted config the changes are unknown', () => {
  const entries = poolHistory({
    pool: worker,
    machineConfigs: [chrony, second],
    builds: [build('worker-1', first, 11, succeeded('1')), build('worker-2', second, 12, succeeded('2'))],
    machineConfigNodes: [],
  });
  expect(entries.map(({ build, changes }) => [build, changes])).toEqual([
    ['worker-2', undefined],
    ['worker-1', undefined],
  ]);
});

test('an entry names the revision under which the operator recorded it', () => {
  const assigned = (
    revision: number,
    config: MachineConfig,
    digit?: string,
    of = 'worker',
  ): PoolRevision => ({
    apiVersion: 'shale.dev/v1',
    kind: 'PoolRevision',
    metadata: {
      name: `${of}-${revision}`,
      creationTimestamp: `2026-11-2${revision}T10:00:00Z`,
      ownerReferences: [
        { apiVersion: GROUP, kind: 'MachineConfigPool', name: of, uid: of === 'worker' ? 'w' : 'i' },
      ],
    },
    spec: {
      machineConfigPool: { name: of },
      revision,
      machineConfig: { name: config.metadata.name },
      ...(digit === undefined ? {} : { image: parseDigestedPullspec(image(digit)) }),
    },
  });
  const entries = poolHistory({
    pool: worker,
    machineConfigs: [chrony, first, second],
    builds: [build('worker-2', second, 12, succeeded('2'))],
    machineConfigNodes: [],
    poolRevisions: [
      assigned(1, first),
      assigned(3, second, '2'),
      assigned(2, second, '2'),
      assigned(4, second, '3'),
      assigned(5, second, '2', 'infra'),
    ],
  });
  expect(entries.map(({ config, revision }) => [config, revision])).toEqual([
    [second.metadata.name, { number: 3, at: '2026-11-23T10:00:00Z' }],
    [first.metadata.name, { number: 1, at: '2026-11-21T10:00:00Z' }],
  ]);
});
