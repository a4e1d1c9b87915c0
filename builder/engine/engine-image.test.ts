import { readdir } from 'node:fs/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import { pullspecDigest } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import type { Descriptor } from '../../image/digest.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import { engineInputsDigest } from '../../predict/image/engine-spec.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import {
  type EngineWorld,
  SECRET,
  startEngineWorld,
  withSecret,
} from '../../test/fixtures/scripted-engine.ts';
import { engineImage } from './engine-image.ts';
import { engineImageTarget } from './find-engine-image.ts';

const signal = deadline(200_000);
let world: EngineWorld;

beforeEach(async () => {
  world = await startEngineWorld();
});

type Blob = Pick<Descriptor, 'digest'>;

describe('an image that commands make', () => {
  test('is pushed beside the images of the pool, labelled with its inputs', async () => {
    const engine = world.newEngine();
    const { request, lines, run } = world.setUp(engine);
    const made = await run();
    expect(made).toMatchObject({ built: true, logTail: ['working'] });
    expect(lines).toEqual(['working']);
    const { inputs, target, stockImage } = await engineImageTarget(world.client, request, signal);
    expect(made.stockImage).toBe(stockImage);
    const { digest, config, manifest } = await describeImage(world.client, target, 'amd64', signal);
    expect(digest).toBe(pullspecDigest(made.image));
    expect(config.config?.Labels).toMatchObject({
      kept: 'yes',
      [imageLabels.engineInputs]: engineInputsDigest(inputs),
    });
    expect(manifest.layers).toHaveLength(2);
    expect(await readdir(world.workDir)).toEqual([]);
  });

  test('is built from a context without secrets, with the build arguments, on the base by its name', async () => {
    const engine = world.newEngine();
    const { request, run } = world.setUp(engine);
    await run();
    expect(engine.builds).toHaveLength(1);
    expect(engine.builds[0]).toMatchObject({
      containerfile: 'Containerfile',
      tag: `shale.local/pool/${request.pool}:amd64`,
      buildArguments: { A: 'b' },
      secrets: [],
      cacheFrom: [],
    });
    expect(engine.builds[0]).not.toHaveProperty('platform');
    expect(engine.loaded).toHaveLength(1);
    expect(engine.loaded[0]?.includes('shale.local/base:')).toBe(true);
  });

  test('takes its other stages from registries through the builder, too', async () => {
    const engine = world.newEngine();
    const { parts, request } = world.setUp(engine);
    const stock = parseReference(request.baseImage);
    const tools = `${stock.registry}/os/tools:1`;
    await pushBaseImage(world.client, tools, signal, 'amd64', 'tools');
    const containerfile = `FROM ${tools} AS tools\nFROM configs AS final\nCOPY --from=tools /a /b\n`;
    const engineSpec = { ...request.engineSpec, containerfile };
    await engineImage(parts, { ...request, engineSpec }, signal);
    expect(engine.loaded).toHaveLength(2);
    const missing = { ...engineSpec, containerfile: containerfile.replace(':1', ':2') };
    await expect(engineImage(parts, { ...request, engineSpec: missing }, signal)).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('os/tools manifests/2'),
    });
    expect(engine.builds).toHaveLength(1);
  });

  test('is built for another architecture under emulation, from the cache that the engine has', async () => {
    const engine = world.newEngine();
    engine.report = { ...engine.report, architecture: 'arm64' };
    const { request, run } = world.setUp(engine);
    const cached = `shale.local/pool/${request.pool}:amd64`;
    engine.images.add(cached);
    await run();
    expect(engine.builds[0]).toMatchObject({ platform: 'linux/amd64', cacheFrom: [cached] });
  });

  test('is used again by a retry of the same process, and by nobody without a record', async () => {
    const engine = world.newEngine();
    const { parts, request, run } = world.setUp(engine);
    const first = await run();
    expect(await run()).toMatchObject({ image: first.image, built: false, logTail: [] });
    expect(engine.builds).toHaveLength(1);
    await engineImage({ ...parts, built: new Set() }, request, signal);
    expect(engine.builds).toHaveLength(2);
  });

  test('is used again by the key that signed its inputs', async () => {
    const engine = world.newEngine();
    const key = newSigningKey();
    const { parts, request } = world.setUp(engine, { key });
    await engineImage({ ...parts, built: new Set() }, request, signal);
    await engineImage({ ...parts, built: new Set() }, request, signal);
    expect(engine.builds).toHaveLength(1);
    await engineImage({ ...parts, built: new Set() }, { ...request, key: newSigningKey() }, signal);
    expect(engine.builds).toHaveLength(2);
  });

  test('is built where another image lies under its name, even one that is on record', async () => {
    const engine = world.newEngine();
    const { parts, request } = world.setUp(engine);
    const { target, stockImage } = await engineImageTarget(world.client, request, signal);
    const { bytes, mediaType } = await world.client.getManifest(parseReference(stockImage), signal);
    const stock = parseReference(`${target.registry}/os/stock`);
    const { config, layers } = JSON.parse(String(bytes)) as { config: Blob; layers: Blob[] };
    for (const { digest } of [config, ...layers])
      await world.client.mountBlob(target, digest, stock.repository, signal);
    const planted = await world.client.putManifest(target, { mediaType, bytes }, signal);
    const recorded = [byDigest(target, planted)];
    expect(await engineImage({ ...parts, recorded }, request, signal)).toMatchObject({ built: true });
    expect(engine.builds).toHaveLength(1);
  });

  test('is made of a base whose layers are described, as Podman counts them', async () => {
    const engine = world.newEngine();
    await world.setUp(engine).run();
    expect(engine.loaded.map(String)).toEqual([
      expect.stringContaining('"history":[{"created_by":"base image"}]'),
    ]);
  });

  test('may add nothing to its base', async () => {
    const engine = world.newEngine();
    engine.layer = undefined;
    const { image } = await world.setUp(engine).run();
    const { manifest } = await describeImage(world.client, parseReference(image), 'amd64', signal);
    expect(manifest.layers).toHaveLength(1);
  });

  test('reads the files of the config only where its Containerfile does', async () => {
    const engine = world.newEngine();
    const content = Buffer.from('server a');
    const tree = () => [
      { type: 'file', path: '/etc/chrony.conf', mode: 0o644, uid: 0, gid: 0, content } as const,
    ];
    const { request } = world.setUp(engine);
    const reading = { ...request.engineSpec, containerfile: 'COPY machineconfig/etc/chrony.conf /x' };
    await world.setUp(engine, { tree }).run();
    await world.setUp(engine, { tree, engineSpec: reading }).run();
    expect(engine.builds.map(({ context }) => context.includes('server a'))).toEqual([false, true]);
  });

  test('is given its secrets as files of the context, and they are masked in the log', async () => {
    const engine = world.newEngine();
    engine.output = `the key is ${SECRET}\n`;
    const { request } = world.setUp(engine);
    const { run, lines } = world.setUp(engine, withSecret(request));
    await run();
    expect(engine.builds[0]?.secrets).toEqual([{ id: 'entitlement/key', file: '.shale-secret-0' }]);
    expect(engine.builds[0]?.context.includes(SECRET)).toBe(true);
    expect(lines).toEqual(['the key is ***']);
  });
});
