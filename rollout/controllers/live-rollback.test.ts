import { beforeEach, describe, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNodeStatus, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  aBuild,
  aMachineConfiguration,
  aMachineOSConfig,
  aNode,
  aPool,
  aRenderedConfig,
  aSuccess,
  condition,
  image,
} from '../../test/fixtures/objects.ts';

/** A layered pool is rolled back from what its nodes took live: the builder has to label the image again for that. */

const WORKER = 'node-role.kubernetes.io/worker';
const [ONE, TWO] = ['rendered-worker-1', 'rendered-worker-2'] as const;
const POLICY = 'sha256:p';
const START = Date.parse('2026-06-01T00:00:00Z');
const signal = new AbortController().signal;
let cluster: MemoryCluster;
let operator: SteppedOperator;
let clock: number;

const base = (build: MachineOSBuild): MachineOSBuild => ({
  ...build,
  spec: { ...build.spec, transitionsFrom: [], baseImage: 'stock' },
});
const built = (name: string, config: string, digit: string, at: string) =>
  base(aBuild(name, config, { at, policyDigest: POLICY, status: aSuccess(digit) }));

function relabelled(status: Partial<NonNullable<MachineOSBuild['status']>> = {}): MachineOSBuild {
  const at = '2026-03-01T00:00:00Z';
  const made = aSuccess('7', 'Relabel');
  const build = base(aBuild('again', ONE, { at, policyDigest: POLICY, status: { ...made, ...status } }));
  return {
    ...build,
    metadata: { ...build.metadata, annotations: { [annotations.relabels]: 'one' } },
    spec: { ...build.spec, transitionsFrom: [{ config: TWO, base: 'base' }] },
  };
}

beforeEach(async () => {
  cluster = new MemoryCluster();
  clock = START;
  operator = steppedOperator(cluster, () => clock);
  for (const name of [ONE, TWO]) cluster.put(MachineConfigs, configOf(name));
  cluster.put(
    MachineConfigurations,
    aMachineConfiguration(POLICY, { files: [{ path: '/etc/motd', actions: [{ type: 'None' }] }] }),
  );
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker', 'one'));
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', uid: 'uid-a', labels: { [WORKER]: '' } } }));
  cluster.put(MachineOSBuilds, built('one', ONE, '1', '2026-01-01T00:00:00Z'));
  await target(ONE);
  runs(ONE, image('1'));
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker', 'two'));
  const two = built('two', TWO, '2', '2026-02-01T00:00:00Z');
  cluster.put(MachineOSBuilds, {
    ...two,
    spec: { ...two.spec, transitionsFrom: [{ config: ONE, base: 'base' }] },
  });
  await target(TWO);
  runs(TWO, image('2'));
  await look();
});

function configOf(name: string): MachineConfig {
  const file = { path: '/etc/motd', contents: { source: `data:,${name}` } };
  const config = { ignition: { version: '3.5.0' }, storage: { files: [file] } };
  const rendered = aRenderedConfig(name);
  return { ...rendered, spec: { ...rendered.spec, config } };
}

async function look(times = 3): Promise<void> {
  for (let index = 0; index < times; index += 1) {
    operator.catchUp();
    clock += 1_000;
    await operator.pools.reconcile('worker', signal);
  }
}

async function target(config: string): Promise<void> {
  const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
  const spec = {
    ...pool.spec,
    configuration: { name: config },
    nodeSelector: { matchLabels: { [WORKER]: '' } },
  };
  const status = { ...pool.status, observedMachineConfigs: configVersions(pool, []) };
  cluster.put(MachineConfigPools, { ...pool, spec, status });
  await look();
}

function runs(config: string, currentImage: string): void {
  const node = cluster.get(MachineConfigNodes, 'a');
  const status: Partial<MachineConfigNodeStatus> = {
    mode: 'Layered',
    baseImage: 'base',
    configVersion: { current: config, desired: config },
    configImage: { currentImage },
    conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
  };
  if (node !== undefined) cluster.put(MachineConfigNodes, { ...node, status });
}

async function annotate(text: string | null): Promise<void> {
  const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
  const set = text === null ? {} : { [annotations.rollback]: text };
  cluster.put(MachineConfigPools, { ...pool, metadata: { ...pool.metadata, annotations: set } });
  await look(1);
}

const rollBack = () => annotate(JSON.stringify({ config: ONE, image: image('1'), by: 'ann' }));
const desired = () => cluster.get(MachineConfigNodes, 'a')?.spec.configImage?.desiredImage;
const images = () => cluster.list(PoolRevisions).map(({ spec }) => spec.image);
const updating = () => {
  const { conditions = [] } = cluster.get(MachineConfigPools, 'worker')?.status ?? {};
  const found = conditions.find(({ type }) => type === 'Updating');
  return found && `${found.status} ${found.reason} ${found.message}`;
};

describe('a rollback to an image whose label does not list what nodes run', () => {
  test('waits for the builder to label it again, and says until when', async () => {
    await rollBack();
    const text =
      cluster.get(MachineConfigPools, 'worker')?.metadata.annotations?.[annotations.rollback] ?? '';
    const waitsUntil = new Date(clock + 60_000).toISOString();
    expect(JSON.parse(text)).toMatchObject({ from: { config: TWO, image: image('2') }, waitsUntil });
    await look();
    expect(desired()).toBe(image('2'));
    expect(updating()).toBe(
      `True RollingBack 0 of 1 node runs ${ONE} as ${image('1')}; rolled back by ann; nodes wait until ${waitsUntil} at the latest for a label by which they don't reboot: the builder labels it again`,
    );
  });

  test('assigns that label once it is recorded', async () => {
    await rollBack();
    cluster.put(MachineOSBuilds, relabelled());
    await look();
    expect(images()).toContain(image('7'));
    expect(desired()).toBe(image('7'));
    runs(ONE, image('7'));
    await look();
    expect(updating()).toMatch(/^False RolledBack 1 of 1 node runs rendered-worker-1 /);
    // Nothing runs any more what the first label doesn't list: the node is not given that for it.
    expect(desired()).toBe(image('7'));
  });

  test('is under way again by the first label when the builder takes longer than nodes may wait', async () => {
    await rollBack();
    clock = START + 120_000;
    await look();
    expect(desired()).toBe(image('1'));
    expect(updating()).toContain(
      'nodes reboot to the image as it was recorded: its image has no other label in time: the builder labels it again',
    );
    cluster.put(MachineOSBuilds, relabelled());
    await look();
    expect(desired()).toBe(image('7'));
  });

  test.each<[string, Partial<NonNullable<MachineOSBuild['status']>>, RegExp]>([
    [
      'in another repository',
      { digestedImagePushSpec: parseDigestedPullspec(`evil.test/os@sha256:${'e'.repeat(64)}`) },
      /again is refused: its image is in repository evil\.test\/os; expected registry\.test:5000\/os/,
    ],
    ['on another base image', { baseImage: 'evil' }, /the content of MachineOSBuild again, .* is another/],
    [
      'with a layer of its own',
      { builder: { imageBuilderType: 'Append' } },
      /the content of MachineOSBuild again/,
    ],
    [
      'that could not be made',
      { conditions: [condition('Failed', 'True', 'disk full')] },
      /MachineOSBuild again, which labels it again, failed: disk full/,
    ],
  ])('takes the first label at once where the other is of an image %s', async (_what, status, why) => {
    await rollBack();
    cluster.put(MachineOSBuilds, relabelled(status));
    await look();
    expect(desired()).toBe(image('1'));
    expect(images().filter((each) => each !== image('1') && each !== image('2'))).toEqual([undefined]);
    expect(updating()).toMatch(why);
  });

  test('that is cleared is followed by the way forward, under the label that lists the way there', async () => {
    await rollBack();
    cluster.put(MachineOSBuilds, relabelled());
    await look();
    runs(ONE, image('7'));
    await look();
    await annotate(null);
    await look();
    expect(desired()).toBe(image('2'));
  });
});
