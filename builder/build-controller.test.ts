import { describe, expect, test } from 'vitest';
import { outcomeOf } from '../api/build-outcome.ts';
import { signingKeyName } from '../api/image-signing.ts';
import { ConfigMaps } from '../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds, pushedImages } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { annotations, labels } from '../api/names.ts';
import { BuildWorld, CONFIG, NOW } from '../test/fixtures/build-world.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineConfiguration,
  aPool,
  aRenderedConfig,
  aSuccess,
  image,
} from '../test/fixtures/objects.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';

const interrupted = { type: 'Interrupted', status: 'True', reason: 'Interrupted', message: '' } as const;

describe('a MachineOSConfig whose inputs are known', () => {
  test('gets a build of them, which starts, and points to it', async () => {
    const world = new BuildWorld();
    world.putConfig({ generation: 3 }, { renderedImagePushSecret: { name: 'push' } });
    expect(await world.reconcile()).toEqual({ kind: 'done' });
    const { metadata, spec } = world.build;
    expect(metadata.labels).toEqual({
      [labels.targetPool]: 'worker',
      [labels.machineOSConfig]: 'worker',
      [labels.renderedConfig]: CONFIG,
    });
    expect(metadata.annotations).toMatchObject({ [annotations.pushSecret]: 'push' });
    expect(spec).toEqual({
      machineConfig: { name: CONFIG },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: `registry.test:5000/os:${metadata.name}`,
      policyDigest: 'sha256:p',
      baseImage: image('b'),
      transitionsFrom: [],
    });
    expect(world.started).toMatchObject([
      { build: { metadata: { name: metadata.name } }, baseImage: image('b'), architectures: ['amd64'] },
    ]);
    expect(world.cluster.get(MachineOSConfigs, 'worker')?.status).toEqual({
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Reconciling', status: 'True', observedGeneration: 3 }),
      ]),
      observedGeneration: 3,
      machineOSBuild: {
        group: 'machineconfiguration.openshift.io',
        resource: 'machineosbuilds',
        name: metadata.name,
      },
    });
    expect(world.events).toEqual([]);
  });

  test('without a push Secret has a build without its annotation', async () => {
    const world = new BuildWorld();
    await world.reconcile();
    expect(Object.keys(world.build.metadata.annotations ?? {})).not.toContain(annotations.pushSecret);
  });

  test('gets one build, however often it is looked at, and its image once that is pushed', async () => {
    const world = new BuildWorld();
    await world.reconcile();
    await world.reconcile();
    expect(world.started).toHaveLength(1);
    world.cluster.put(MachineOSBuilds, { ...world.build, status: aSuccess('c') });
    await world.reconcile();
    expect(world.started).toHaveLength(1);
    expect(world.cluster.get(MachineOSConfigs, 'worker')?.status?.currentImagePullSpec).toBe(image('c'));
  });

  test('starts the build that an earlier builder left', async () => {
    const first = new BuildWorld();
    await first.reconcile();
    const next = new BuildWorld();
    next.cluster.put(MachineOSBuilds, first.build);
    await next.reconcile();
    expect(next.started.map(({ build }) => build.metadata.name)).toEqual([first.build.metadata.name]);
    expect(next.builds).toHaveLength(1);
  });

  test('gets an interrupted build of the same inputs again, as another object', async () => {
    const world = new BuildWorld();
    await world.reconcile();
    const conditions = [{ ...interrupted, lastTransitionTime: NOW }];
    const repository = world.build.spec.renderedImagePushSpec.split(':').slice(0, -1).join(':');
    const pushed = (digit: string) => `${repository}@sha256:${digit.repeat(64)}`;
    const interrupt = (digit: string) => {
      const status = { conditions, pushedImages: [pushed(digit)] };
      return world.cluster.put(MachineOSBuilds, { ...world.build, status }).metadata.uid;
    };
    const uid = interrupt('a');
    world.started.length = 0;
    await world.reconcile();
    expect(world.build.status).toBeUndefined();
    expect(world.build.metadata.uid).not.toBe(uid);
    expect(world.started).toHaveLength(1);
    // It is pushed under the same tag, and what that named until then has no other trace.
    interrupt('b');
    world.started.length = 0;
    await world.reconcile();
    expect(pushedImages(world.build)).toEqual([pushed('a'), pushed('b')]);
  });

  test('starts no build that another pass created in between: its own event follows', async () => {
    const other = new BuildWorld();
    await other.reconcile();
    const world = new BuildWorld();
    await world.reconcile('another');
    world.cluster.put(MachineOSBuilds, other.build);
    // The caches don't have it yet.
    await world.controller.reconcile('worker');
    expect(world.started).toEqual([]);
  });

  test('does not start a build that is over, where the cache does not show it yet', async () => {
    const world = new BuildWorld();
    await world.reconcile();
    const { build } = world;
    world.started.length = 0;
    await world.reconcile('another');
    world.cluster.put(MachineOSBuilds, { ...build, status: aSuccess('a') });
    await world.controller.reconcile('worker');
    expect(world.started).toEqual([]);
  });

  test('is looked at again until the end of its build is written', async () => {
    const world = new BuildWorld();
    world.ended.add('worker');
    await expect(world.reconcile()).rejects.toMatchObject({ status: 503 });
    expect(world.builds).toEqual([]);
    await world.reconcile();
    expect(world.started).toHaveLength(1);
  });

  test('is looked at again where the API server fails', async () => {
    const world = new BuildWorld();
    world.cluster.trouble = () => 'unavailable';
    await expect(world.reconcile()).rejects.toMatchObject({ status: 503 });
    expect(world.started).toEqual([]);
  });
});

describe('a build that a key signed', () => {
  const [key, next] = ['A', 'B'].map(
    (text) => `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`,
  );
  const publish = (world: BuildWorld, ...keys: readonly (string | undefined)[]) => {
    const pems = keys.filter((pem) => pem !== undefined);
    world.cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'image-signing-keys', namespace: 'shale-system' },
      data: Object.fromEntries(pems.map((pem) => [signingKeyName(pem), pem])),
    });
  };
  const signed = async () => {
    const world = new BuildWorld();
    publish(world, key);
    await world.reconcile();
    const { status, ...build } = world.build;
    const success = { ...aSuccess('1'), signingKey: signingKeyName(key ?? '') };
    world.cluster.put(MachineOSBuilds, { ...build, status: { ...status, ...success } });
    return world;
  };

  test('is signed again by another build once the key is no longer published', async () => {
    const world = await signed();
    await world.reconcile();
    expect(world.builds).toHaveLength(1);
    publish(world, next);
    await world.reconcile();
    expect(world.builds).toHaveLength(2);
    expect(world.started).toHaveLength(2);
  });

  test.each([
    ['the key beside another', [key, next]],
    ['no key, because signing is disabled', []],
  ])('stays with %s', async (_which, keys) => {
    const world = await signed();
    publish(world, ...keys);
    await world.reconcile();
    expect(world.builds).toHaveLength(1);
  });

  test('stays where only the cache does not show its key yet', async () => {
    const world = await signed();
    publish(world, next);
    world.catchUp();
    publish(world, key, next);
    await world.controller.reconcile('worker');
    expect(world.builds).toHaveLength(1);
  });
});

describe('builds of older inputs', () => {
  test('are interrupted, and finished ones stay as they are', async () => {
    const world = new BuildWorld();
    world.cluster.put(MachineOSBuilds, aBuild('worker-running', 'rendered-worker-0'));
    world.cluster.put(MachineOSBuilds, aBuild('worker-done', 'rendered-worker-0', { status: aSuccess('a') }));
    const foreign = aBuild('infra-running', 'rendered-infra-0');
    world.cluster.put(MachineOSBuilds, {
      ...foreign,
      spec: { ...foreign.spec, machineOSConfig: { name: 'infra' } },
    });
    await world.reconcile();
    const newer = world.started[0]?.build.metadata.name;
    expect(world.aborted).toEqual(['worker-running']);
    expect(world.events).toEqual([
      `Normal worker-running BuildInterrupted: ${newer} with newer inputs replaces it`,
    ]);
    const outcome = (name: string) => {
      const build = world.cluster.get(MachineOSBuilds, name);
      return build && outcomeOf(build);
    };
    expect(outcome('worker-running')).toBe('Interrupted');
    expect(outcome('worker-done')).toBe('Succeeded');
    expect(outcome('infra-running')).toBeUndefined();
  });

  test('that end while they are interrupted stay as they ended', async () => {
    const world = new BuildWorld();
    const older = world.cluster.put(MachineOSBuilds, aBuild('worker-running', 'rendered-worker-0'));
    await world.reconcile('another');
    world.cluster.put(MachineOSBuilds, { ...older, status: aSuccess('a') });
    // The caches still have it as it was.
    await world.controller.reconcile('worker');
    expect(world.aborted).toEqual(['worker-running']);
    expect(outcomeOf(world.cluster.get(MachineOSBuilds, 'worker-running') ?? older)).toBe('Succeeded');
  });

  test('are interrupted when their MachineOSConfig is deleted, unless they are over', async () => {
    const world = new BuildWorld();
    world.cluster.remove(MachineOSConfigs, 'worker');
    world.cluster.put(MachineOSBuilds, aBuild('worker-running', CONFIG));
    world.cluster.put(MachineOSBuilds, aBuild('worker-done', CONFIG, { status: aSuccess('a') }));
    expect(await world.reconcile()).toEqual({ kind: 'done' });
    expect(world.aborted).toEqual(['worker-running']);
    expect(world.events).toEqual([
      'Normal worker-running BuildInterrupted: MachineOSConfig worker was deleted',
    ]);
    expect(world.cluster.get(MachineOSBuilds, 'worker-running')?.status).toMatchObject({
      buildEnd: NOW,
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Interrupted', message: 'MachineOSConfig worker was deleted' }),
      ]),
    });
    expect(world.builds).toHaveLength(2);
  });
});

describe('a pool that a rollback holds', () => {
  const HELD = 'rendered-worker-0';
  const first: MachineOSBuild = (() => {
    const build = aBuild('worker-first', HELD, { status: aSuccess('a'), policyDigest: 'sha256:p' });
    return { ...build, spec: { ...build.spec, baseImage: image('b') } };
  })();

  function held() {
    const world = new BuildWorld();
    const pool = aPool('worker', { configuration: { name: CONFIG } });
    const text = JSON.stringify({ config: HELD, image: image('a') });
    const metadata = { ...pool.metadata, annotations: { [annotations.rollback]: text } };
    world.cluster.put(MachineConfigPools, { ...pool, metadata });
    world.cluster.put(MachineConfigs, aConfigNamed(HELD));
    world.cluster.put(MachineConfigs, aConfigNamed(CONFIG, image('b')));
    world.cluster.put(
      MachineConfigurations,
      aMachineConfiguration('sha256:p', { files: [{ path: '/etc/motd', actions: [{ type: 'None' }] }] }),
    );
    world.cluster.put(MachineOSBuilds, first);
    const status = {
      mode: 'Layered',
      configVersion: { current: CONFIG, desired: CONFIG },
      baseImage: 'base',
    } as NonNullable<MachineConfigNode['status']>;
    world.cluster.put(MachineConfigNodes, aMachineConfigNode('worker-0', {}, status));
    return world;
  }

  test('gets the image there labelled again, beside the image of its own target', async () => {
    const world = held();
    await world.reconcile();
    await world.reconcile();
    const [again, own] = world.started;
    expect(world.started).toHaveLength(2);
    expect(again).toMatchObject({ sameAs: first, baseImage: image('b') });
    expect(again?.build).toMatchObject({
      metadata: {
        annotations: { [annotations.relabels]: 'worker-first', [annotations.forRollback]: 'true' },
      },
      spec: {
        machineConfig: { name: HELD },
        transitionsFrom: [{ config: HELD }, { config: CONFIG, base: 'base' }],
      },
    });
    expect(own?.build.spec.machineConfig.name).toBe(CONFIG);
    expect(own).not.toHaveProperty('sameAs');
    expect(world.aborted).toEqual([]);
    const { machineOSBuild } = world.cluster.get(MachineOSConfigs, 'worker')?.status ?? {};
    expect(machineOSBuild?.name).toBe(own?.build.metadata.name);
  });

  test('gets it even where the base image of its own target is unknown', async () => {
    const world = held();
    world.cluster.put(MachineConfigs, aConfigNamed(CONFIG, 'registry.invalid/os/stock:1'));
    await expect(world.reconcile()).rejects.toThrow();
    expect(world.started).toMatchObject([{ sameAs: first }]);
  });

  test('needs it no more once the rollback is over', async () => {
    const world = held();
    await world.reconcile();
    const again = world.started[0]?.build.metadata.name ?? '';
    world.cluster.put(MachineConfigPools, aPool('worker', { configuration: { name: CONFIG } }));
    await world.reconcile();
    expect(world.aborted).toEqual([again]);
  });
});

/** A rendered config with one file that the name decides. */
function aConfigNamed(name: string, osImageURL = ''): MachineConfig {
  const file = { path: '/etc/motd', contents: { source: `data:,${name}` } };
  const config = { ignition: { version: '3.5.0' }, storage: { files: [file] } };
  return { ...aRenderedConfig(name, osImageURL), spec: { osImageURL, config } };
}

test('what is waited for is an event and a condition, and no build', async () => {
  const world = new BuildWorld();
  world.cluster.remove(MachineConfigs, CONFIG);
  expect(await world.reconcile()).toEqual({ kind: 'done' });
  expect(world.events).toEqual([
    `Normal worker BuildWaiting: Waiting for MachineConfig ${CONFIG}, which does not exist`,
  ]);
  expect(world.builds).toEqual([]);
  expect(world.waiting).toEqual([
    'True',
    'RenderedConfigMissing',
    `Waiting for MachineConfig ${CONFIG}, which does not exist`,
  ]);
});

test('a base image that is missing is a condition until there is one', async () => {
  const world = new BuildWorld();
  world.cluster.put(MachineConfigs, aRenderedConfig(CONFIG));
  await world.reconcile();
  expect(world.waiting).toEqual(['True', 'BaseImageMissing', expect.stringContaining('set osImageURL')]);
  world.cluster.put(MachineConfigs, aRenderedConfig(CONFIG, image('b')));
  await world.reconcile();
  expect(world.waiting).toEqual(['False', 'BuildCreated', '']);
});

test('log lines about a MachineOSConfig name the change that it builds', async () => {
  const world = new BuildWorld();
  expect(world.controller.fields('worker')).toEqual({});
  await world.reconcile();
  expect(world.controller.fields('worker')).toEqual({ change: expect.stringMatching(/./) });
  expect(world.controller.fields('unknown')).toEqual({});
});

test('a registry that refuses the tag for new nodes prevents no build, and is an error in the end', async () => {
  const registry = await MemoryRegistry.start();
  const world = new BuildWorld();
  world.plainHttp.add(registry.host);
  world.putConfig({}, { renderedImagePushSpec: `${registry.host}/os/worker:latest` });
  const bootImage = {
    image: `${registry.host}/os/worker@sha256:${'1'.repeat(64)}`,
    proof: 'Rollout' as const,
  };
  const pool = aPool('worker', { configuration: { name: CONFIG } });
  world.cluster.put(MachineConfigPools, { ...pool, status: { bootImage } });
  await expect(world.reconcile()).rejects.toMatchObject({ status: 404 });
  expect(world.started).toHaveLength(1);
  expect(world.events).toEqual([expect.stringMatching(/^Warning worker BootImageNotPublished: /)]);
});
