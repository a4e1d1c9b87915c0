import { describe, expect, test } from 'vitest';
import { MachineConfigs } from '../api/machine-config.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { BuildWorld, CONFIG } from '../test/fixtures/build-world.ts';
import { aRenderedConfig } from '../test/fixtures/objects.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';

const signal = deadline(60_000);

describe('a base image by tag', () => {
  async function setUp() {
    const registry = await MemoryRegistry.start();
    const world = new BuildWorld();
    world.plainHttp.add(registry.host);
    const base = `${registry.host}/os/stock:1`;
    const client = createRegistryClient({ plainHttp: world.plainHttp });
    const digest = await pushBaseImage(client, base, signal);
    world.cluster.put(MachineConfigs, aRenderedConfig(CONFIG, base));
    return { registry, world, base, digest };
  }

  test('is looked up, and again after a while: no watch reports that a tag was moved', async () => {
    const { world, base, digest } = await setUp();
    expect(await world.reconcile()).toEqual({ kind: 'requeue', afterMs: 1234 });
    expect(world.build.spec.baseImage).toBe(`${base}@${digest}`);
  });

  test('that can not be looked up is an event, a condition and an error', async () => {
    const { registry, world, base } = await setUp();
    registry.refuse = () => ({ status: 404, code: 'MANIFEST_UNKNOWN' });
    await expect(world.reconcile()).rejects.toMatchObject({ status: 404 });
    expect(world.events).toEqual([
      expect.stringMatching(
        `^Warning worker BaseImageUnknown: Base image ${base} can't be looked up: .*refused`,
      ),
    ]);
    expect(world.builds).toEqual([]);
    expect(world.waiting).toEqual([
      'True',
      'BaseImageUnknown',
      expect.stringContaining(`Base image ${base} can't be looked up`),
    ]);
  });

  test('is looked up where the rendered config says', async () => {
    const { registry, world, digest } = await setUp();
    const text = `[[registry]]\nprefix = "base.example.com"\nlocation = "${registry.host}"\n`;
    const rendered = aRenderedConfig(CONFIG, 'base.example.com/os/stock:1');
    const files = [
      {
        path: '/etc/containers/registries.conf',
        contents: { source: `data:,${encodeURIComponent(text)}` },
      },
    ];
    world.cluster.put(MachineConfigs, {
      ...rendered,
      spec: { ...rendered.spec, config: { ignition: { version: '3.5.0' }, storage: { files } } },
    });
    await world.reconcile();
    expect(world.build.spec.baseImage).toBe(`base.example.com/os/stock:1@${digest}`);
  });

  test('of a MachineOSConfig counts where its MachineConfigs name none, and is looked up before they are rendered', async () => {
    const { world, base, digest } = await setUp();
    world.cluster.put(MachineConfigs, aRenderedConfig(CONFIG));
    world.putConfig({}, { baseImage: base });
    await world.reconcile();
    expect(world.build.spec.baseImage).toBe(`${base}@${digest}`);
    world.cluster.remove(MachineConfigs, CONFIG);
    await world.reconcile();
    expect(world.events).toEqual([expect.stringContaining('BuildWaiting')]);
  });

  test('is looked up with the pull Secret', async () => {
    const { world } = await setUp();
    world.putConfig({}, { baseImagePullSecret: { name: 'pull' } });
    await expect(world.reconcile()).rejects.toThrow('Secret shale-system/pull: not found');
  });
});
