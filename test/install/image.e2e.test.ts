/** Shale's image, built from the Containerfile without any network, on a Debian that was made from packages here. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SHALE_VERSION } from '../../api/names.ts';
import {
  engineObstacle,
  podmanAlone,
  type StartedEngine,
  startEngine,
} from '../../workshop/sandbox/engine/start-engine.ts';
import { patience } from '../fixtures/patience.ts';
import { sample } from '../fixtures/sample.ts';
import { FIRST_TIME_MS, labRootfs } from '../node-lab/lab.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const BASE = 'localhost/debian:base';
const IMAGE = 'localhost/shale:test';
const BUILD_MS = 240_000;
/** It is about 200 MB, of which Node is 127; another figure is to be explained, not to be got used to. */
const LARGEST_BYTES = 260e6;

/** Others run among the host's, which has them. */
const OWN_PROGRAMS = ['cp', 'mount', 'nsenter'];

const engines = [
  {
    kind: 'podman',
    address: '--url',
    // Builds as `make image` does. The client of a service would compress the context first, which takes longer than
    // the build.
    alone: podmanAlone,
    // A layer for each COPY would be cached for a next build.
    options: ['--layers=false'],
  },
  { kind: 'docker', address: '--host', alone: undefined, options: [] },
] as const;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-image-'));
  await execa(path.join(ROOT, 'bin/image-packages'));
  await execa(path.join(ROOT, 'bin/bootstrap'), ['programs']);
  await copyContext();
}, patience(BUILD_MS));
afterAll(() => rm(dir, { recursive: true, force: true }));

/**
 * Engines read the whole context before they leave out what .dockerignore names; other tests write below .shale
 * meanwhile.
 */
async function copyContext(): Promise<void> {
  const [archive, context] = [path.join(dir, 'context.tar'), contextIn(dir)];
  const without = ['.git', '.shale', 'node_modules'].map((name) => `--exclude=./${name}`);
  await mkdir(context);
  await execa('tar', ['--create', '--file', archive, '--directory', ROOT, ...without, '.']);
  await execa('tar', ['--extract', '--file', archive, '--directory', context]);
  await rm(archive);
}
const contextIn = (directory: string) => path.join(directory, 'context');

// A landing takes one of them: building the image again costs most of a minute.
for (const { kind, address, alone, options } of sample('engines that build the image', engines, 1)) {
  const obstacle = engineObstacle(kind);
  const title = obstacle === undefined ? kind : `${kind} (skipped: ${obstacle})`;
  describe.skipIf(obstacle !== undefined)(title, { timeout: patience(BUILD_MS) }, () => {
    let engine: StartedEngine;
    const run = async ([program, ...args]: readonly [string, ...string[]]): Promise<string> => {
      const env = { DOCKER_BUILDKIT: '0' };
      const { all } = await execa(program, args, { cwd: contextIn(dir), env, all: true });
      return all;
    };
    const cli = (...args: string[]) => run([kind, address, engine.url, ...args]);
    const shale = (...args: string[]) => cli('run', '--rm', '--network=none', IMAGE, ...args);

    beforeAll(
      async () => {
        const storage = path.join(dir, kind);
        const start = async () => {
          engine = await startEngine({ kind, dir: storage });
        };
        if (alone === undefined) await start();
        const builder = (...args: string[]) =>
          alone === undefined ? cli(...args) : run([...alone(storage), ...args]);
        const rootfs = path.join(dir, `${kind}.tar`);
        await execa('tar', ['--directory', await labRootfs(), '--create', '--file', rootfs, '.']);
        await builder('import', rootfs, BASE);
        await rm(rootfs);
        const versions = ['--build-arg', `VERSION=${SHALE_VERSION}`, '--build-arg', 'REVISION=0123abc'];
        await builder(
          'build',
          ...options,
          '--file',
          'Containerfile',
          '--tag',
          IMAGE,
          '--build-arg',
          `BASE=${BASE}`,
          ...versions,
          '.',
        );
        if (alone !== undefined) await start();
      },
      patience(FIRST_TIME_MS + BUILD_MS),
    );
    afterAll(() => engine?.stop(), patience(60_000));

    test('runs shale, every process of it', async () => {
      expect(await shale('--version')).toBe(SHALE_VERSION);
      expect(await shale('--help')).toContain('Usage: shale');
      for (const role of ['operator', 'machine-os-builder', 'daemon', 'page', 'capi-extension']) {
        expect(await shale(role, '--help')).toContain(`Usage: shale ${role}`);
      }
    });

    test.each(OWN_PROGRAMS)('has %s, which the daemon runs among its own mounts', async (program) => {
      const own = ['--rm', '--network=none', `--entrypoint=${program}`];
      expect(await cli('run', ...own, IMAGE, '--version')).toContain(program);
    });

    test('is a command line for files of the host, which its user may only read', async () => {
      const volume = `${path.join(ROOT, 'examples')}:/work:ro`;
      // As docs/reference/cli.md has it.
      const examples = ['--security-opt=label=disable', '--volume', volume, '--workdir=/work'];
      const onExamples = (...args: string[]) =>
        cli('run', '--rm', '--network=none', ...examples, IMAGE, ...args);
      expect(await shale('version', '--client')).toContain(SHALE_VERSION);
      const plan = await onExamples('plan', '--from', '.', '-f', 'tour/karg.yaml');
      expect(plan).toMatch(/^pool worker: Reboot$/m);
      expect(await onExamples('validate', '-f', '.')).toMatch(/are valid$/);
      // What it finds no cluster by is an error of one line, as anywhere.
      await expect(shale('status')).rejects.toMatchObject({ exitCode: 69 });
    });

    test('is labelled, runs as nobody in particular, and is as small as it was', async () => {
      const [image] = JSON.parse(await cli('image', 'inspect', IMAGE));
      expect(image.Config.Labels).toMatchObject({
        'org.opencontainers.image.title': 'shale',
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.version': SHALE_VERSION,
        'org.opencontainers.image.revision': '0123abc',
      });
      expect(image.Config.User).toBe('65532:65532');
      expect(image.Size).toBeLessThan(LARGEST_BYTES);
    });

    test('has what its processes call, its bill of materials, and nothing that only tests need', async () => {
      const container = (await cli('create', IMAGE)).trim();
      const tar = path.join(dir, `${kind}-image.tar`);
      await cli('export', '--output', tar, container);
      const { stdout } = await execa('tar', ['--list', '--file', tar]);
      const files = new Set(stdout.split('\n').map((name) => name.replace(/^\.?\//, '')));
      const named = (pattern: RegExp) => [...files].filter((name) => pattern.test(name));

      for (const program of OWN_PROGRAMS) {
        expect(named(new RegExp(`^(usr/)?bin/${program}$`))).toHaveLength(1);
      }
      expect(named(/(^|\/)(sh|bash|npm|apt|dpkg)$/)).toEqual([]);
      expect(named(/^shale\/.*\.test\.ts$|^shale\/node_modules\/(vitest|typescript|@biomejs)\//)).toEqual([]);
      expect(named(/^shale\/node_modules\/.*\.ts$|^shale\/node_modules\/[^@/]+\/test\//)).toEqual([]);

      const sbom = await execa('tar', [
        '--extract',
        '--to-stdout',
        '--file',
        tar,
        'usr/share/sbom/shale.spdx.json',
      ]);
      const names = JSON.parse(sbom.stdout).packages.map(({ name }: { name: string }) => name);
      expect(names).toEqual(
        expect.arrayContaining([
          'shale',
          `node-linux-${process.arch}`,
          '@kubernetes/client-node',
          'libc6',
          'util-linux',
        ]),
      );
      expect(names).not.toContain('vitest');
    });
  });
}
