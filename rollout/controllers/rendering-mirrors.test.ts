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

  it('never delete an admin’s MachineConfig of that name', async () => {
    world.putConfig(REGISTRIES, { '/etc/mine': 'x' });
    const name = await world.render();
    expect(world.names()).toContain(REGISTRIES);
    expect(world.filesOf(name)).toMatch(/\/etc\/mine/);
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
    world.cluster.put(
      MachineConfigPools,
      aPool('infra', {
        machineConfigSelector: { matchExpressions: [{ key: ROLE, operator: 'Exists' }] },
      }),
    );
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
