import { beforeEach, describe, expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { configOf, RenderedPools, ROLE } from '../../test/fixtures/fleet/rendered-pools.ts';
import { aBuild, aMachineConfigNode, aNode, aPool } from '../../test/fixtures/objects.ts';

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
