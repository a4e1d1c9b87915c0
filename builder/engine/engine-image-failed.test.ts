import { readdir } from 'node:fs/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import {
  type EngineWorld,
  type ScriptedEngine,
  SECRET,
  startEngineWorld,
  withSecret,
} from '../../test/fixtures/scripted-engine.ts';
import { BuildFailure } from '../build-failure.ts';
import { type EngineAbout, EngineError, StepFailed } from './container-engine.ts';
import { engineImage } from './engine-image.ts';
import { engineImageTarget } from './find-engine-image.ts';

const signal = deadline(200_000);
let world: EngineWorld;

beforeEach(async () => {
  world = await startEngineWorld();
});

async function failureOf(run: Promise<unknown>): Promise<BuildFailure> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof BuildFailure) return error;
  throw new Error('the build did not fail as a build', { cause: error });
}

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
      /^6 \(exit status 3\)\. Before that it printed: 2 \| 3 \| 4 \| 5\. Fix/,
    ],
    [
      'by the disk when a command finds it full',
      (engine) => {
        engine.failure = new StepFailed('exit status 1');
        engine.output = 'cp: No space left on device\n';
      },
      'EngineDiskFull',
      true,
      /disk is full: cp: No space left on device \(exit status 1\)/,
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
    const engine = world.newEngine();
    script(engine);
    const failure = await failureOf(world.setUp(engine).run());
    expect(failure).toMatchObject({ reason, temporary });
    expect(failure.message).toMatch(message);
    expect(await readdir(world.workDir)).toEqual([]);
  });

  test('when it takes too long', async () => {
    const engine = world.newEngine();
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
    const { parts, request } = world.setUp(engine);
    const failure = await failureOf(engineImage({ ...parts, limitMs: 3_600_000 }, request, signal));
    expect(failure).toMatchObject({ reason: 'EngineTimedOut', temporary: false, logTail: ['slow'] });
    expect(failure.message).toContain('took longer than 60 minutes');
    expect(failure.message).toContain('--engine-minutes');
  });

  test('without a trace of its own when it is no longer needed', async () => {
    const engine = world.newEngine();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    engine.build = async () => {
      stop.abort(new Error('enough'));
      throw new StepFailed('killed');
    };
    const { parts, request } = world.setUp(engine);
    await expect(engineImage(parts, request, stop.signal)).rejects.toThrow('enough');
  });

  test('when a command keeps a secret in the image, which is not pushed', async () => {
    const engine = world.newEngine();
    engine.layer = Buffer.from(`copied ${SECRET}`.padEnd(512, '\0'));
    const { request } = world.setUp(engine);
    const { request: own, run } = world.setUp(engine, withSecret(request));
    const failure = await failureOf(run());
    expect(failure).toMatchObject({ reason: 'SecretInLayer', temporary: false });
    expect(failure.message).not.toContain(SECRET);
    const { target } = await engineImageTarget(world.client, own, signal);
    await expect(world.client.getManifest(target, signal)).rejects.toMatchObject({ status: 404 });
  });

  test('when its message has a secret, without it', async () => {
    const engine = world.newEngine();
    engine.failure = new StepFailed(`RUN curl -u ${SECRET} returned 1`);
    const { request } = world.setUp(engine);
    const failure = await failureOf(world.setUp(engine, withSecret(request)).run());
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
    const engine = world.newEngine();
    engine.report = { ...engine.report, ...about };
    const { request } = world.setUp(engine);
    const extensionsImage = `${world.registry.host}/os/stock:1`;
    const { run } = world.setUp(
      engine,
      needs === 'secrets'
        ? withSecret(request)
        : { engineSpec: { ...request.engineSpec, extensions: ['usbguard'], extensionsImage } },
    );
    if (reason === undefined) expect((await run()).built).toBe(true);
    else expect(await failureOf(run())).toMatchObject({ reason, temporary: false });
  });
});
