import { beforeEach, describe, expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { configOf, RenderedPools, ROLE } from '../../test/fixtures/fleet/rendered-pools.ts';
import { aBuild, aMachineConfigNode, aNode, aPool, aRecord } from '../../test/fixtures/objects.ts';

let world: RenderedPools;

beforeEach(() => {
  world = new RenderedPools();
});

describe('rendered configs that nobody uses', () => {
  /** Renders as many further configs, each newer than the one before. */
  async function renderMore(count: number, from = 0): Promise<string[]> {
    const rendered: string[] = [];
    for (let index = from; index < from + count; index += 1) {
      world.putConfig('50-motd', { '/etc/motd': `text-${index}` });
      rendered.push(await world.render());
      const object = world.cluster.get(MachineConfigs, rendered.at(-1) ?? '');
      if (object === undefined) throw new Error('nothing was rendered');
      const creationTimestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
      world.cluster.put(MachineConfigs, { ...object, metadata: { ...object.metadata, creationTimestamp } });
    }
    world.operator.catchUp();
    return rendered;
  }

  const left = (rendered: readonly string[]) => rendered.filter((name) => world.names().includes(name));

  it('are kept for rollbacks, the newest five beside the target', async () => {
    const rendered = await renderMore(8);
    await world.render();
    expect(left(rendered)).toEqual(rendered.slice(-6));
  });

  it.each<[string, (name: string) => void]>([
    ['a node runs', (name) => world.putNode('a', name)],
    [
      'a node is to run',
      (name) =>
        void world.cluster.put(
          MachineConfigNodes,
          aMachineConfigNode('a', { configVersion: { desired: name } }),
        ),
    ],
    [
      'a node has staged',
      (name) =>
        world.putNode('a', 'x', {
          plan: { config: name, staged: true, actions: [], causes: [], source: '' },
        }),
    ],
    ['was built', (name) => void world.cluster.put(MachineOSBuilds, aBuild('b', name))],
    ['every node of the pool ran last', () => world.completeRollout()],
    [
      'the pool is rolled back to it unless its change is confirmed',
      (name) => {
        const pool = world.cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
        const status = { ...pool.status, rollbackDeadline: { id: 'a', config: name } };
        world.cluster.put(MachineConfigPools, { ...pool, status });
      },
    ],
    [
      'a node was provisioned with it',
      (name) => {
        const metadata = { name: 'a', annotations: { [annotations.provisionedConfig]: name } };
        world.cluster.put(Nodes, aNode('a', { metadata }));
      },
    ],
  ])('are kept beyond that where %s', async (_what, use) => {
    const [first = ''] = await renderMore(1);
    use(first);
    await renderMore(8, 1);
    await world.render();
    expect(world.names()).toContain(first);
  });

  it('of another pool are left to that pool', async () => {
    world.cluster.put(MachineConfigPools, aPool('infra'));
    world.cluster.put(MachineConfigs, {
      ...configOf('50-infra', { '/etc/infra': 'x' }),
      metadata: { name: '50-infra', labels: { [ROLE]: 'infra' } },
    });
    const other = await world.render('infra');
    const pool = world.cluster.get(MachineConfigPools, 'infra');
    if (pool !== undefined) world.cluster.put(MachineConfigPools, { ...pool, spec: aPool('infra').spec });
    await renderMore(8);
    await world.render();
    expect(world.names()).toContain(other);
  });
});

describe('rendered configs of a pool that is deleted', () => {
  const KEEPER = 'uid-of-configuration';
  const putConfiguration = (uid: string) =>
    world.cluster.put(MachineConfigurations, {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION, uid },
      spec: {},
    });
  const owners = (name: string) =>
    world.cluster
      .get(MachineConfigs, name)
      ?.metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller ?? false]);
  const putPool = (uid: string) => {
    const { metadata, ...pool } = aPool('worker');
    world.cluster.put(MachineConfigPools, { ...pool, metadata: { ...metadata, uid } });
  };

  it('have an owner that outlives it: the garbage collector deletes what has none left', async () => {
    putConfiguration(KEEPER);
    const name = await world.render();
    expect(owners(name)).toEqual([
      ['uid-worker', true],
      [KEEPER, false],
    ]);
  });

  it('get it once it is there, where they are in use', async () => {
    const first = await world.render();
    world.putNode('a', first);
    world.putConfig('50-motd', { '/etc/motd': 'second' });
    const unused = await world.render();
    world.putConfig('50-motd', { '/etc/motd': 'third' });
    const target = await world.render();
    expect(owners(first)).toEqual([['uid-worker', true]]);
    putConfiguration(KEEPER);
    await world.render();
    for (const name of [first, target])
      expect(owners(name)).toEqual([
        ['uid-worker', true],
        [KEEPER, false],
      ]);
    expect(owners(unused)).toEqual([['uid-worker', true]]);
    putConfiguration('uid-of-the-next');
    await world.render();
    expect(owners(first)).toEqual([
      ['uid-worker', true],
      ['uid-of-the-next', false],
    ]);
    const before = world.cluster.writes;
    await world.render();
    expect(world.cluster.writes).toBe(before);
  });

  it('stay while a node runs them, also beside a new pool of that name, and are deleted then', async () => {
    putConfiguration(KEEPER);
    const unused = await world.render();
    world.putConfig('50-motd', { '/etc/motd': 'second' });
    const runs = await world.render();
    world.putNode('a', runs);
    world.cluster.put(MachineConfigPools, aPool('infra'));
    world.cluster.remove(MachineConfigPools, 'worker');
    await world.render('infra');
    expect(world.names()).toContain(runs);
    expect(world.names()).not.toContain(unused);
    putPool('uid-of-the-new-pool');
    world.putConfig('50-motd', { '/etc/motd': 'third' });
    const target = await world.render();
    expect(world.names()).toContain(runs);
    world.putNode('a', target);
    await world.render();
    expect(world.names()).toContain(target);
    expect(world.names()).not.toContain(runs);
  });

  it('are not in use where only the record of that pool names them', async () => {
    putConfiguration(KEEPER);
    const first = await world.render();
    const pool = world.cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    for (const revision of aRecord(pool, { config: first })) world.cluster.put(PoolRevisions, revision);
    putPool('uid-of-the-next');
    world.putConfig('50-motd', { '/etc/motd': 'second' });
    await world.render();
    await world.render();
    expect(world.names()).not.toContain(first);
  });

  it('belong to a new pool that renders the same', async () => {
    putConfiguration(KEEPER);
    const name = await world.render();
    putPool('uid-of-the-new-pool');
    expect(await world.render()).toBe(name);
    expect(owners(name)).toEqual([
      ['uid-of-the-new-pool', true],
      [KEEPER, false],
    ]);
  });

  it('that an admin wrote under such a name stay', async () => {
    world.cluster.put(MachineConfigs, {
      ...configOf('rendered-by-hand', { '/etc/a': 'a' }),
      metadata: { name: 'rendered-by-hand' },
    });
    await world.render();
    expect(world.names()).toContain('rendered-by-hand');
  });
});
