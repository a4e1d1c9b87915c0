import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import { type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { writeImageArchive } from '../../image/archive/write-archive.ts';
import { type Descriptor, digestOf } from '../../image/digest.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { givenEngine } from '../../test/fixtures/given-engine.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { BuildFailure } from '../build-failure.ts';
import { byDigest } from '../by-digest.ts';
import { Slots } from '../slots.ts';
import {
  type ContainerEngine,
  type EngineAbout,
  type EngineBuild,
  EngineError,
  StepFailed,
} from './container-engine.ts';
import { type EngineImageRequest, type EngineParts, engineImage } from './engine-image.ts';
import { engineInputsDigest } from './engine-spec.ts';
import { engineImageTarget } from './find-engine-image.ts';

const signal = deadline(200_000);
const SECRET = 'entitlement-0123456789';
let registry: MemoryRegistry;
let client: RegistryClient;
let workDir: string;

beforeEach(async () => {
  registry = await MemoryRegistry.start();
  client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  workDir = await mkdtemp(path.join(tmpdir(), 'shale-engine-image-'));
  onTestFinished(() => rm(workDir, { recursive: true }));
  await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
});

/** An engine that does what a test says, and records what it is asked. */
class ScriptedEngine implements ContainerEngine {
  readonly builds: EngineBuild[] = [];
  readonly loaded: Buffer[] = [];
  images = new Set<string>();
  report: EngineAbout = { kind: 'Podman', version: '5', buildKit: false, architecture: 'amd64' };
  /** What a build prints before it ends. */
  output = 'working\n';
  failure: Error | undefined;
  /** Content of the layer that the commands add; undefined for none. */
  layer: Buffer | undefined = Buffer.from('made by a command'.padEnd(512, '\0'));
  /** Whether the result is based on the base image. */
  onBase = true;

  about = async () => this.report;
  hasImage = async (name: string) => this.images.has(name);
  async load(archive: AsyncIterable<Uint8Array>) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of archive) chunks.push(chunk);
    this.loaded.push(Buffer.concat(chunks));
  }
  async build(build: EngineBuild, onOutput: (text: string) => void) {
    this.builds.push(build);
    onOutput(this.output);
    if (this.failure !== undefined) throw this.failure;
  }
  async save() {
    const base = parseReference(`${registry.host}/os/stock:1`);
    const { config, manifest } = await describeImage(client, base, 'amd64', signal);
    const below = this.onBase
      ? manifest.layers.map(async (blob) => gunzipSync(await buffer(client.readBlob(base, blob, signal))))
      : [];
    const contents = [...(await Promise.all(below)), ...(this.layer === undefined ? [] : [this.layer])];
    const diffIds = contents.map((bytes) => digestOf(bytes));
    const layers = contents.map((bytes) => ({
      diffId: digestOf(bytes),
      size: bytes.length,
      open: () => Readable.from([bytes]),
    }));
    const text = JSON.stringify({ ...config, rootfs: { type: 'layers', diff_ids: diffIds } });
    return Readable.from(writeImageArchive({ name: 'made', config: Buffer.from(text), layers }));
  }
  remove = async () => undefined;
}

type Blob = Pick<Descriptor, 'digest'>;

let pools = 0;

function setUp(engine: ScriptedEngine, more: Partial<EngineImageRequest> = {}) {
  pools += 1;
  const lines: string[] = [];
  const parts: EngineParts = {
    engines: givenEngine(() => engine),
    client,
    workDir,
    slots: new Slots(1),
    limitMs: 60_000,
    built: new Set<DigestedPullspec>(),
    recorded: [],
    onLine: (line) => lines.push(line),
  };
  const request: EngineImageRequest = {
    engineSpec: {
      containerfile: 'RUN true',
      extensions: [],
      extensionsImage: '',
      kernelType: 'default',
      packages: [],
      buildArguments: { A: 'b' },
      buildSecrets: [],
    },
    pool: `pool-${pools}`,
    baseImage: `${registry.host}/os/stock:1`,
    pushSpec: `${registry.host}/os/pool-${pools}:x`,
    rendered: {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: 'rendered-worker-1' },
      spec: {},
    },
    architecture: 'amd64',
    rebuild: '',
    tree: () => [],
    secrets: async () => [{ id: 'entitlement/key', value: Buffer.from(SECRET) }],
    ...more,
  };
  return { parts, request, lines, run: () => engineImage(parts, request, signal) };
}

async function failureOf(run: Promise<unknown>): Promise<BuildFailure> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof BuildFailure) return error;
  throw new Error('the build did not fail as a build', { cause: error });
}

const withSecret = (request: EngineImageRequest): Partial<EngineImageRequest> => ({
  engineSpec: { ...request.engineSpec, buildSecrets: ['entitlement'] },
});

describe('an image that commands make', () => {
  test('is pushed beside the images of the pool, labelled with its inputs', async () => {
    const engine = new ScriptedEngine();
    const { request, lines, run } = setUp(engine);
    const made = await run();
    expect(made).toMatchObject({ built: true, logTail: ['working'] });
    expect(lines).toEqual(['working']);
    const { inputs, target, stockImage } = await engineImageTarget(client, request, signal);
    expect(made.stockImage).toBe(stockImage);
    const { digest, config, manifest } = await describeImage(client, target, 'amd64', signal);
    expect(digest).toBe(pullspecDigest(made.image));
    expect(config.config?.Labels).toMatchObject({
      kept: 'yes',
      [imageLabels.engineInputs]: engineInputsDigest(inputs),
    });
    expect(manifest.layers).toHaveLength(2);
    expect(await readdir(workDir)).toEqual([]);
  });

  test('is built from a context without secrets, with the build arguments, on the base by its name', async () => {
    const engine = new ScriptedEngine();
    const { request, run } = setUp(engine);
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

  test('is built for another architecture under emulation, from the cache that the engine has', async () => {
    const engine = new ScriptedEngine();
    engine.report = { ...engine.report, architecture: 'arm64' };
    const { request, run } = setUp(engine);
    const cached = `shale.local/pool/${request.pool}:amd64`;
    engine.images.add(cached);
    await run();
    expect(engine.builds[0]).toMatchObject({ platform: 'linux/amd64', cacheFrom: [cached] });
  });

  test('is used again by a retry of the same process, and by nobody without a record', async () => {
    const engine = new ScriptedEngine();
    const { parts, request, run } = setUp(engine);
    const first = await run();
    expect(await run()).toMatchObject({ image: first.image, built: false, logTail: [] });
    expect(engine.builds).toHaveLength(1);
    await engineImage({ ...parts, built: new Set() }, request, signal);
    expect(engine.builds).toHaveLength(2);
  });

  test('is used again by the key that signed its inputs', async () => {
    const engine = new ScriptedEngine();
    const key = newSigningKey();
    const { parts, request } = setUp(engine, { key });
    await engineImage({ ...parts, built: new Set() }, request, signal);
    await engineImage({ ...parts, built: new Set() }, request, signal);
    expect(engine.builds).toHaveLength(1);
    await engineImage({ ...parts, built: new Set() }, { ...request, key: newSigningKey() }, signal);
    expect(engine.builds).toHaveLength(2);
  });

  test('is built where another image lies under its name, even one that is on record', async () => {
    const engine = new ScriptedEngine();
    const { parts, request } = setUp(engine);
    const { target, stockImage } = await engineImageTarget(client, request, signal);
    const { bytes, mediaType } = await client.getManifest(parseReference(stockImage), signal);
    const stock = parseReference(`${target.registry}/os/stock`);
    const { config, layers } = JSON.parse(String(bytes)) as { config: Blob; layers: Blob[] };
    for (const { digest } of [config, ...layers])
      await client.mountBlob(target, digest, stock.repository, signal);
    const planted = await client.putManifest(target, { mediaType, bytes }, signal);
    const recorded = [byDigest(target, planted)];
    expect(await engineImage({ ...parts, recorded }, request, signal)).toMatchObject({ built: true });
    expect(engine.builds).toHaveLength(1);
  });

  test('is made of a base whose layers are described, as Podman counts them', async () => {
    const engine = new ScriptedEngine();
    await setUp(engine).run();
    expect(engine.loaded.map(String)).toEqual([
      expect.stringContaining('"history":[{"created_by":"base image"}]'),
    ]);
  });

  test('may add nothing to its base', async () => {
    const engine = new ScriptedEngine();
    engine.layer = undefined;
    const { image } = await setUp(engine).run();
    const { manifest } = await describeImage(client, parseReference(image), 'amd64', signal);
    expect(manifest.layers).toHaveLength(1);
  });

  test('reads the files of the config only where its Containerfile does', async () => {
    const engine = new ScriptedEngine();
    const content = Buffer.from('server a');
    const tree = () => [
      { type: 'file', path: '/etc/chrony.conf', mode: 0o644, uid: 0, gid: 0, content } as const,
    ];
    const { request } = setUp(engine);
    const reading = { ...request.engineSpec, containerfile: 'COPY machineconfig/etc/chrony.conf /x' };
    await setUp(engine, { tree }).run();
    await setUp(engine, { tree, engineSpec: reading }).run();
    expect(engine.builds.map(({ context }) => context.includes('server a'))).toEqual([false, true]);
  });

  test('is given its secrets as files of the context, and they are masked in the log', async () => {
    const engine = new ScriptedEngine();
    engine.output = `the key is ${SECRET}\n`;
    const { request } = setUp(engine);
    const { run, lines } = setUp(engine, withSecret(request));
    await run();
    expect(engine.builds[0]?.secrets).toEqual([{ id: 'entitlement/key', file: '.shale-secret-0' }]);
    expect(engine.builds[0]?.context.includes(SECRET)).toBe(true);
    expect(lines).toEqual(['the key is ***']);
  });
});

describe('a build fails', () => {
  test.each<[string, (engine: ScriptedEngine) => void, string, boolean, RegExp]>([
    [
      'by its Containerfile when a command fails',
      (engine) => {
        engine.failure = new StepFailed('exit status 3');
        engine.output = '1\n2\n3\n4\n5\n6\n';
      },
      'ContainerfileFailed',
      false,
      /^exit status 3\. The last output: 2 \| 3 \| 4 \| 5 \| 6\./,
    ],
    [
      'by the disk when a command finds it full',
      (engine) => {
        engine.failure = new StepFailed('exit status 1');
        engine.output = 'cp: No space left on device\n';
      },
      'EngineDiskFull',
      true,
      /disk is full: exit status 1/,
    ],
    [
      'by the architecture when its programs do not run',
      (engine) => {
        engine.failure = new StepFailed('exit status 1');
        engine.output = 'exec /bin/sh: exec format error\n';
      },
      'EngineArchitecture',
      false,
      /qemu-user-static/,
    ],
    [
      'by the engine when that can not be reached',
      (engine) => {
        engine.failure = new EngineError('EngineUnavailable', 'connect ECONNREFUSED');
      },
      'EngineUnavailable',
      true,
      /^connect ECONNREFUSED$/,
    ],
    [
      'when its result is not based on the base image',
      (engine) => {
        engine.onBase = false;
      },
      'NotOnBase',
      false,
      /FROM configs/,
    ],
  ])('%s', async (_, script, reason, temporary, message) => {
    const engine = new ScriptedEngine();
    script(engine);
    const failure = await failureOf(setUp(engine).run());
    expect(failure).toMatchObject({ reason, temporary });
    expect(failure.message).toMatch(message);
    expect(await readdir(workDir)).toEqual([]);
  });

  test('when it takes too long', async () => {
    const engine = new ScriptedEngine();
    const limit = new AbortController();
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    // The engine's hour is over as soon as it works; every other limit stays.
    const spy = vi
      .spyOn(AbortSignal, 'timeout')
      .mockImplementation((ms) => (ms === 3_600_000 ? limit.signal : timeout(ms)));
    onTestFinished(() => spy.mockRestore());
    engine.build = (build, onOutput, ...[until]: [AbortSignal?]) => {
      onOutput('slow\n');
      const { promise, reject } = Promise.withResolvers<never>();
      until?.addEventListener('abort', () => reject(until.reason as Error), { once: true });
      engine.builds.push(build);
      limit.abort(new Error('an hour is over'));
      return promise;
    };
    const { parts, request } = setUp(engine);
    const failure = await failureOf(engineImage({ ...parts, limitMs: 3_600_000 }, request, signal));
    expect(failure).toMatchObject({ reason: 'EngineTimedOut', temporary: false, logTail: ['slow'] });
    expect(failure.message).toContain('took longer than 60 minutes');
    expect(failure.message).toContain('--engine-minutes');
  });

  test('without a trace of its own when it is no longer needed', async () => {
    const engine = new ScriptedEngine();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    engine.build = async () => {
      stop.abort(new Error('enough'));
      throw new StepFailed('killed');
    };
    const { parts, request } = setUp(engine);
    await expect(engineImage(parts, request, stop.signal)).rejects.toThrow('enough');
  });

  test('when a command keeps a secret in the image, which is not pushed', async () => {
    const engine = new ScriptedEngine();
    engine.layer = Buffer.from(`copied ${SECRET}`.padEnd(512, '\0'));
    const { request } = setUp(engine);
    const { request: own, run } = setUp(engine, withSecret(request));
    const failure = await failureOf(run());
    expect(failure).toMatchObject({ reason: 'SecretInLayer', temporary: false });
    expect(failure.message).not.toContain(SECRET);
    const { target } = await engineImageTarget(client, own, signal);
    await expect(client.getManifest(target, signal)).rejects.toMatchObject({ status: 404 });
  });

  test('when its message has a secret, without it', async () => {
    const engine = new ScriptedEngine();
    engine.failure = new StepFailed(`RUN curl -u ${SECRET} returned 1`);
    const { request } = setUp(engine);
    const failure = await failureOf(setUp(engine, withSecret(request)).run());
    expect(failure.message).toContain('RUN curl -u *** returned 1');
  });

  test.each<[string, Partial<EngineAbout>, 'secrets' | 'extensions', string | undefined]>([
    [
      'Docker can not keep secrets out of the image',
      { kind: 'Docker', buildKit: true },
      'secrets',
      'SecretsNotSupported',
    ],
    ['Podman can', { kind: 'Podman' }, 'secrets', undefined],
    ['Docker without BuildKit has no mounts', { kind: 'Docker' }, 'extensions', 'MountsNotSupported'],
    ['Docker with BuildKit has', { kind: 'Docker', buildKit: true }, 'extensions', undefined],
    ['Podman has', { kind: 'Podman' }, 'extensions', undefined],
  ])('%s', async (_, about, needs, reason) => {
    const engine = new ScriptedEngine();
    engine.report = { ...engine.report, ...about };
    const { request } = setUp(engine);
    const extensionsImage = `${registry.host}/os/stock:1`;
    const { run } = setUp(
      engine,
      needs === 'secrets'
        ? withSecret(request)
        : { engineSpec: { ...request.engineSpec, extensions: ['usbguard'], extensionsImage } },
    );
    if (reason === undefined) expect((await run()).built).toBe(true);
    else expect(await failureOf(run())).toMatchObject({ reason, temporary: false });
  });
});
