import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { patience } from '../test/fixtures/patience.ts';
import { bundlePrograms } from './bundle.ts';

const PROGRAM = 'container/testdata/own-place.ts';
const SERVER = 'container/testdata/plain-server.ts';
const ROOT = path.join(import.meta.dirname, '..');

let dir: string;
let bundles: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-bundle-'));
  const cache = path.join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  bundles = await mkdtemp(path.join(cache, 'shale-bundle-'));
  await bundlePrograms({ main: PROGRAM, server: SERVER }, bundles);
}, patience(30_000));
afterAll(async () => {
  await rm(bundles, { recursive: true });
  await rm(dir, { recursive: true });
});

test(
  'a program finds the files beside its modules, also in a copy of the checkout',
  async () => {
    const copied = path.join(dir, path.relative(ROOT, bundles));
    await mkdir(path.dirname(copied), { recursive: true });
    await cp(bundles, copied, { recursive: true });
    const { stdout } = await execa(process.execPath, [path.join(copied, 'main.mjs')]);
    expect(stdout).toBe(path.join(dir, PROGRAM));
  },
  patience(30_000),
);

test(
  'a program that serves HTTP does not load fetch',
  async () => {
    const { stdout } = await execa(process.execPath, [path.join(bundles, 'server.mjs')]);
    expect(stdout).toBe('function');
  },
  patience(30_000),
);

test('the image runs the bundle that make image makes', async () => {
  const read = (file: string) => readFile(path.join(ROOT, file), 'utf8');
  expect(await read('Containerfile')).toContain('"/shale/cli/dist/main.mjs"]');
  expect(await read('Makefile')).toMatch(/^image:.* programs\b/m);
});
