/** A real BuildKit runs the commands of Containerfiles; its answers can't be made up. */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { engineAccess } from '../../builder/engine/engine-access.ts';
import {
  engineObstacle,
  type StartedEngine,
  startEngine,
} from '../../workshop/sandbox/engine/start-engine.ts';
import { shellEntries, shellObstacle, stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage, type SandboxRegistry, startRegistry } from '../../workshop/sandbox/registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import {
  buildWithEngine,
  containerFile,
  type EngineBuildSetup,
  failureOf,
  pullImage,
  renderedConfig,
  SECRET,
} from './build-with-engine.ts';

const signal = deadline(280_000);
let dir: string;
let registry: SandboxRegistry;
let base: DigestedPullspec;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-engines-'));
  registry = await startRegistry(path.join(dir, 'registry'));
  const shell = shellObstacle() === undefined ? shellEntries() : [];
  base = await pushImage(registry, 'os/stock', { entries: [...stockImage(), ...shell] }, signal);
});
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true });
});

const setup = (engine: string | undefined, pool: string): EngineBuildSetup => ({
  registry,
  base,
  workDir: dir,
  engine,
  pool,
  signal,
});

const engines = [
  { name: 'podman', kind: 'podman', buildKit: false },
  { name: 'docker', kind: 'docker', buildKit: false },
  { name: 'docker-buildkit', kind: 'docker', buildKit: true },
] as const;

for (const { name, kind, buildKit } of engines) {
  const obstacle = engineObstacle(kind) ?? shellObstacle();
  const title = obstacle === undefined ? name : `${name} (skipped: ${obstacle})`;
  describe.skipIf(obstacle !== undefined)(title, { timeout: patience(120_000) }, () => {
    let engine: StartedEngine;
    beforeAll(async () => {
      engine = await startEngine({ kind, buildKit, dir: path.join(dir, name) });
    }, patience(60_000));
    afterAll(() => engine.stop(), patience(60_000));

    const build = (
      ...args: Parameters<typeof buildWithEngine> extends [unknown, ...infer Rest] ? Rest : never
    ) => buildWithEngine(setup(engine.url, name), ...args);

    test('makes an image by commands, and lays the config on it as the last layer', async () => {
      const { result, lines } = await build(
        containerFile('FROM configs AS final', 'RUN echo made > /etc/made && echo working'),
      );
      expect(result.way).toBe('Engine');
      expect(lines.some((line) => line.includes('working'))).toBe(true);
      expect(result.logTail).toEqual(lines);
      const { description, layers } = await pullImage(setup(engine.url, name), result.image);
      expect(description.config.config?.Labels).toMatchObject({
        [imageLabels.stockImage]: base,
        [imageLabels.baseImage]: result.baseImage,
      });
      expect(layers.at(-2)?.includes('etc/made')).toBe(true);
      expect(layers.at(-1)?.includes('etc/chrony.conf')).toBe(true);
    });

    test('takes stages and files from a registry that it knows nothing of', async () => {
      const tool = { type: 'file', path: '/usr/lib/tool', mode: 0o644, uid: 0, gid: 0 } as const;
      const content = Buffer.from('from the registry');
      const tools = await pushImage(
        registry,
        `os/tools-${name}`,
        { entries: [{ ...tool, content }] },
        signal,
      );
      const { result } = await build(
        containerFile(
          `FROM ${tools} AS tools`,
          'FROM configs AS final',
          'COPY --from=tools /usr/lib/tool /usr/lib/one',
          `COPY --from=${tools} /usr/lib/tool /usr/lib/other`,
        ),
      );
      const { layers } = await pullImage(setup(engine.url, name), result.image);
      const text = layers.map(String).join('');
      expect(text).toContain('usr/lib/one');
      expect(text).toContain('usr/lib/other');
      expect(text.split('from the registry')).toHaveLength(3);
    });

    test('runs no command for a config-only change, and knows the way between the two', async () => {
      const spec = containerFile('RUN echo once > /etc/once');
      const first = await build(spec);
      const from = { config: renderedConfig('one'), base: first.result.baseImage };
      const recorded = [first.result.baseImage];
      const second = await buildWithEngine({ ...setup(engine.url, name), recorded }, spec, {
        rendered: renderedConfig('two'),
        froms: [from],
      });
      expect(second).toMatchObject({
        lines: [],
        result: { way: 'Append', baseImage: first.result.baseImage },
      });
      expect(second.result.transitions).toEqual([
        { from: `rendered-worker-one on ${from.base}`, actions: 'Reboot' },
      ]);
      expect((await build(spec, { rebuild: 'today' })).result.way).toBe('Engine');
    });

    test('reports the step that failed and its output', async () => {
      const failure = await failureOf(
        build(containerFile('RUN echo fine', 'RUN echo about to fail && exit 3', 'RUN echo never')),
      );
      expect(failure).toMatchObject({ reason: 'ContainerfileFailed', temporary: false });
      expect(failure.message).toContain('about to fail');
      const broken = await failureOf(build(containerFile('RUN --mount=type=house true')));
      expect(broken.reason).toBe('ContainerfileFailed');
      expect(broken.message).toMatch(/house/i);
    });

    test('refuses a last stage that is based on something else', async () => {
      const spec = containerFile('FROM scratch AS final', 'COPY --from=configs /usr/lib/os-release /x');
      expect((await failureOf(build(spec))).reason).toBe('NotOnBase');
    });

    test('lets go of a build that is no longer wanted', async () => {
      const stop = new AbortController();
      const until = AbortSignal.any([signal, stop.signal]);
      const run = buildWithEngine(
        { ...setup(engine.url, name), signal: until },
        containerFile('RUN echo sleeping && sleep 4242'),
        {},
        (line) => {
          if (line.endsWith('sleeping') && !line.includes('RUN')) stop.abort(new Error('enough'));
        },
      );
      await expect(run).rejects.toThrow('enough');
      // Podman hears of it only when the command ends (buildah does not watch the request while one runs).
      if (kind === 'docker') await ended('sleep 4242');
    });

    test('takes build arguments', async () => {
      const { lines } = await build({
        ...containerFile('ARG WHO', 'RUN echo "hello $WHO"'),
        buildArguments: [{ name: 'WHO', value: 'ops' }],
      });
      expect(lines.some((line) => line.includes('hello ops'))).toBe(true);
    });

    test('gives a Containerfile the files of the config, where it reads them', async () => {
      const spec = containerFile(
        'COPY machineconfig/etc/chrony.conf /etc/copied.conf',
        'RUN cat /etc/copied.conf',
      );
      const { lines } = await build(spec, { rendered: renderedConfig('read-me') });
      expect(lines.some((line) => line.includes('# read-me'))).toBe(true);
      expect((await build(spec, { rendered: renderedConfig('read-again') })).result.way).toBe('Engine');
    });

    const readsSecret = (command: string) => ({
      ...containerFile(`RUN --mount=type=secret,id=entitlement/key ${command}`),
      buildSecrets: [{ name: 'entitlement' }],
    });

    test.runIf(kind === 'podman')(
      'mounts secrets for commands, and lets none into a layer or a log',
      async () => {
        const { result, lines } = await build(
          readsSecret('cat /run/secrets/entitlement/key && touch /etc/used'),
        );
        expect(lines).toContain('***');
        expect(lines.join('\n')).not.toContain(SECRET);
        const { layers } = await pullImage(setup(engine.url, name), result.image);
        for (const layer of layers) expect(layer.includes(SECRET)).toBe(false);
        const leaking = await failureOf(build(readsSecret('cp /run/secrets/entitlement/key /etc/key')));
        expect(leaking.reason).toBe('SecretInLayer');
      },
    );

    test.runIf(kind === 'docker')('refuses secrets that it could not keep out of the image', async () => {
      expect((await failureOf(build(readsSecret('true')))).reason).toBe('SecretsNotSupported');
    });
  });
}

test('an engine that is not available is reported, and tried again', async () => {
  const nobody = setup(`unix://${dir}/no.sock`, 'nobody');
  const failure = await failureOf(buildWithEngine(nobody, containerFile('RUN true')));
  expect(failure).toMatchObject({ reason: 'EngineUnavailable', temporary: true });
});

test('a builder without an engine says what needs one', async () => {
  const failure = await failureOf(buildWithEngine(setup(undefined, 'none'), { packages: ['htop'] }));
  expect(failure).toMatchObject({ reason: 'NoEngine', temporary: false });
});

test('TCP without TLS is refused', async () => {
  await expect(engineAccess('tcp://127.0.0.1:2375')).rejects.toThrow('TCP needs TLS');
});

describe.skipIf(engineObstacle('docker') !== undefined || shellObstacle() !== undefined)(
  'a full disk',
  () => {
    test('is distinguished from a command that is wrong', { timeout: patience(60_000) }, async () => {
      const small = path.join(dir, 'small');
      await mkdir(small);
      await execa('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', small]);
      try {
        const engine = await startEngine({ kind: 'docker', dir: path.join(small, 'engine') });
        try {
          const fill = 'RUN for i in 1 2 3 4 5 6 7 8; do cat /usr/bin/busybox >> /usr/big; done';
          const failure = await failureOf(buildWithEngine(setup(engine.url, 'full'), containerFile(fill)));
          expect(failure).toMatchObject({ reason: 'EngineDiskFull', temporary: true });
        } finally {
          await engine.stop();
        }
      } finally {
        await execa('umount', [small]);
      }
    });
  },
);

const ENDED_MS = 20_000;

/** @throws Error when a process of that command line still runs after a while. */
async function ended(command: string): Promise<void> {
  const deadline = performance.now() + patience(ENDED_MS);
  while (await runs(command)) {
    if (performance.now() > deadline) throw new Error(`${command} still runs`);
    await delay(50);
  }
}

async function runs(command: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''));
  return (await Promise.all(lines)).some((line) => line.replaceAll('\0', ' ').trim() === command);
}
