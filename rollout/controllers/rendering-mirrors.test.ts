import { beforeEach, describe, expect, it } from 'vitest';
import { type ImageDigestMirrorSet, ImageDigestMirrorSets } from '../../api/image-sources.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { configOf, RenderedPools, ROLE } from '../../test/fixtures/fleet/rendered-pools.ts';
import { aPool } from '../../test/fixtures/objects.ts';

const REGISTRIES = '99-worker-generated-registries';

let world: RenderedPools;

beforeEach(() => {
  world = new RenderedPools();
});

/** A custom pool, which selects worker's MachineConfigs, too. */
function putInfra(): void {
  const pool = aPool('infra', {
    machineConfigSelector: { matchExpressions: [{ key: ROLE, operator: 'Exists' }] },
  });
  world.cluster.put(MachineConfigPools, pool);
}

describe('mirrors', () => {
  it('are a generated MachineConfig of the pool, which follows them and goes with them', async () => {
    const without = await world.render();
    world.putMirrors('mirror-1.example.com/a');
    const first = await world.render();
    expect(first).not.toBe(without);
    const { source = [] } = world.cluster.get(MachineConfigPools, 'worker')?.spec.configuration ?? {};
    expect(source.map(({ name }) => name)).toContain(REGISTRIES);
    const generated = world.filesOf(REGISTRIES);
    world.putMirrors('mirror-2.example.com/a');
    expect(await world.render()).not.toBe(first);
    expect(world.filesOf(REGISTRIES)).not.toBe(generated);
    world.cluster.remove(ImageDigestMirrorSets, 'mirrors');
    expect(await world.render()).toBe(without);
    expect(world.names()).not.toContain(REGISTRIES);
  });

  it('never delete or overwrite an admin’s MachineConfig of that name', async () => {
    world.putConfig(REGISTRIES, { '/etc/mine': 'x' });
    const name = await world.render();
    world.putMirrors('mirror-1.example.com/a');
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toMatch(
      new RegExp(`^True RenderFailed .*MachineConfig ${REGISTRIES}: exists and was not generated`),
    );
    expect(world.filesOf(REGISTRIES)).toMatch(/\/etc\/mine/);
    putInfra();
    await world.render('infra');
    const { source = [] } = world.cluster.get(MachineConfigPools, 'infra')?.spec.configuration ?? {};
    expect(source.filter((config) => config.name === REGISTRIES)).toHaveLength(1);
    world.cluster.remove(MachineConfigs, REGISTRIES);
    expect(world.filesOf(await world.render())).not.toMatch(/\/etc\/mine/);
    expect(world.degraded()).toMatch(/^False/);
  });

  it('restore their MachineConfig when somebody has changed it', async () => {
    world.putMirrors('mirror-1.example.com/a');
    const name = await world.render();
    const generated = world.cluster.get(MachineConfigs, REGISTRIES);
    if (generated === undefined) throw new Error('nothing was generated');
    const { spec } = configOf(REGISTRIES, { '/etc/mine': 'x' });
    world.cluster.put(MachineConfigs, { ...generated, spec });
    expect(await world.render()).toBe(name);
    expect(world.filesOf(REGISTRIES)).toBe(JSON.stringify(generated.spec.config));
  });

  it('replace no MachineConfig that another controller generated', async () => {
    world.putMirrors('mirror-1.example.com/a');
    const before = await world.render();
    const kubelet = configOf('99-worker-generated-kubelet', { '/etc/kubernetes/kubelet.conf': 'k' });
    const metadata = { ...kubelet.metadata, annotations: { [annotations.generatedByController]: 'v1' } };
    world.cluster.put(MachineConfigs, { ...kubelet, metadata });
    const after = await world.render();
    expect(after).not.toBe(before);
    expect(world.filesOf(after)).toMatch(/kubelet\.conf/);
  });

  it('are rendered once for a custom pool, whose worker config is written by another pass', async () => {
    putInfra();
    world.putMirrors('mirror-1.example.com/a');
    const early = await world.render('infra');
    await world.render('worker');
    expect(await world.render('infra')).toBe(early);
  });

  it('that contradict each other are reported, and nothing is rendered', async () => {
    const name = await world.render();
    world.cluster.put(ImageDigestMirrorSets, {
      ...world.putMirrors('m.example.com/a'),
      metadata: { name: 'others' },
      spec: {
        imageDigestMirrors: [
          { source: 'registry.example.com/a', mirrors: [], mirrorSourcePolicy: 'NeverContactSource' },
          { source: 'registry.example.com/a', mirrors: [], mirrorSourcePolicy: 'AllowContactingSource' },
        ],
      },
    } as ImageDigestMirrorSet);
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toMatch(/^True RenderFailed/);
  });
});
