/**
 * Who may create MachineConfigs, in a cluster whose policy for rendered ones is not in force, wants nodes to take one
 * of theirs for one that was rendered, or the operator to delete those that nodes may go back to.
 */

import { beforeEach, describe, expect, test } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { readMarks } from '../../machineconfig/owner-marks.ts';
import { forgedMessage, isForged, isNamedFor } from '../../machineconfig/rendered-name.ts';
import { RenderedPools } from '../fixtures/fleet/rendered-pools.ts';
import { aPool, aRecord } from '../fixtures/objects.ts';

const FORGED = { [annotations.noReboot]: '["/etc/motd"]' };
let world: RenderedPools;

beforeEach(() => {
  world = new RenderedPools();
});

/** @returns what the pool is rendered to, which was never created. */
async function toBeRendered(): Promise<MachineConfig> {
  const other = new RenderedPools();
  const rendered = other.cluster.get(MachineConfigs, await other.render());
  if (rendered === undefined) throw new Error('nothing was rendered');
  return rendered;
}

const marked =
  (more: Readonly<Record<string, string>>) =>
  (config: MachineConfig): MachineConfig => ({
    ...config,
    metadata: { ...config.metadata, annotations: { ...config.metadata.annotations, ...more } },
  });

const targetOf = async () => world.cluster.get(MachineConfigs, await world.render());

describe('a rendered config that was made beforehand', () => {
  test.each<[string, (config: MachineConfig) => MachineConfig]>([
    ['with a mark', marked(FORGED)],
    ['with other actions', marked({ [annotations.actions]: '{"/etc/motd":["Reload a.service"]}' })],
    ['with other limits', marked({ [annotations.limits]: '{"fileBytes":1,"configBytes":1}' })],
    ['of another stream', marked({ [annotations.osImageStream]: 'old' })],
    [
      'without what says that it was rendered',
      (config) => ({ ...config, metadata: { ...config.metadata, annotations: {} } }),
    ],
    [
      'with other content',
      (config) => ({ ...config, spec: { ...config.spec, kernelArguments: ['init=/bin/sh'] } }),
    ],
    [
      'with an owner that does not exist',
      (config) => ({
        ...config,
        metadata: {
          ...config.metadata,
          ownerReferences: [
            ...(config.metadata.ownerReferences ?? []),
            { apiVersion: 'v1', kind: 'Node', name: 'gone', uid: 'gone' },
          ],
        },
      }),
    ],
    ['of nobody', (config) => ({ ...config, metadata: { ...config.metadata, ownerReferences: [] } })],
  ])('%s becomes the one that the operator renders', async (_, change) => {
    const honest = await toBeRendered();
    const { metadata, spec } = change(honest);
    const { resourceVersion: _version, uid: _uid, ...rest } = metadata;
    world.cluster.put(MachineConfigs, { ...honest, metadata: rest, spec });
    const target = await targetOf();
    expect(target?.metadata.name).toBe(honest.metadata.name);
    expect(target?.spec).toEqual(honest.spec);
    const record = ({ metadata: { annotations: written, ownerReferences } }: MachineConfig) => [
      [
        annotations.noReboot,
        annotations.actions,
        annotations.limits,
        annotations.osImageStream,
        annotations.generatedByController,
      ].map((key) => written?.[key]),
      ownerReferences?.map(({ uid }) => uid),
    ];
    expect(record(target as MachineConfig)).toEqual(record(honest));
    expect(readMarks(target as MachineConfig).size).toBe(0);
  });

  test('keeps what others write on it', async () => {
    const honest = await toBeRendered();
    const { resourceVersion: _version, uid: _uid, ...metadata } = honest.metadata;
    const theirs = {
      ...metadata,
      annotations: { ...metadata.annotations, ...FORGED, 'example.com/seen': 'yes' },
    };
    world.cluster.put(MachineConfigs, { ...honest, metadata: theirs });
    expect((await targetOf())?.metadata.annotations).toMatchObject({ 'example.com/seen': 'yes' });
  });
});

describe('whoever is about to use a rendered config', () => {
  test('finds out that its marks or its content are others than its name is a digest of', async () => {
    const honest = await toBeRendered();
    expect(isForged(honest)).toBe(false);
    expect(isNamedFor('worker', honest)).toBe(true);
    const marked = {
      ...honest,
      metadata: { ...honest.metadata, annotations: { ...honest.metadata.annotations, ...FORGED } },
    };
    const changed = { ...honest, spec: { ...honest.spec, extensions: ['usbguard'] } };
    for (const forged of [marked, changed]) {
      expect(isForged(forged)).toBe(true);
      expect(isNamedFor('worker', forged)).toBe(false);
    }
    expect(forgedMessage(honest.metadata.name)).toContain(honest.metadata.name);
  });

  test('takes no name of another form for a digest', () => {
    expect(
      isForged({ apiVersion: 'v1', kind: 'MachineConfig', metadata: { name: '50-motd' }, spec: {} }),
    ).toBe(false);
    expect(
      isNamedFor('worker', {
        apiVersion: 'v1',
        kind: 'MachineConfig',
        metadata: { name: 'rendered-worker-1' },
        spec: {},
      }),
    ).toBe(false);
  });
});

describe('rendered configs that nodes may go back to', () => {
  /** Renders as many configs, each newer than the one before. */
  async function renderMany(count: number, from = 0): Promise<string[]> {
    const names: string[] = [];
    for (let index = from; index < from + count; index += 1) {
      world.putConfig('50-motd', { '/etc/motd': `text-${index}` });
      const name = await world.render();
      names.push(name);
      const object = world.cluster.get(MachineConfigs, name) as MachineConfig;
      const creationTimestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
      world.cluster.put(MachineConfigs, { ...object, metadata: { ...object.metadata, creationTimestamp } });
    }
    return names;
  }

  test('stay, however many newer ones somebody makes up', async () => {
    const names = await renderMany(6);
    const pool = world.cluster.get(MachineConfigPools, 'worker');
    const owner = {
      apiVersion: 'v1',
      kind: 'MachineConfigPool',
      name: 'worker',
      uid: pool?.metadata.uid ?? '',
      controller: true,
    };
    const fakes = Array.from({ length: 9 }, (_, index) => [
      `rendered-worker-${'f'.repeat(31)}${index}`,
      `rendered-worker-${index}`,
      `fake-${index}`,
    ]).flat();
    for (const name of fakes) {
      const metadata = {
        name,
        ownerReferences: [owner],
        creationTimestamp: '2030-01-01T00:00:00Z',
        annotations: { [annotations.generatedByController]: 'x' },
      };
      world.cluster.put(MachineConfigs, {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfig',
        metadata,
        spec: {},
      });
    }
    await world.render();
    expect(names.filter((name) => world.names().includes(name))).toEqual(names);
    // They are somebody's objects, and nothing of the operator's.
    expect(fakes.filter((name) => world.names().includes(name))).toEqual(fakes);
  });

  test('stay as long as a recorded revision names them', async () => {
    const [first = '', second = ''] = await renderMany(2);
    const pool = world.cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    for (const revision of aRecord(pool, { config: first })) world.cluster.put(PoolRevisions, revision);
    world.operator.catchUp();
    await renderMany(8, 2);
    await world.render();
    expect(world.names()).toContain(first);
    expect(world.names()).not.toContain(second);
  });
});
