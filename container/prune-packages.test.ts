import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';

const KEPT = [
  '@scope/test/index.js',
  '@scope/test/package.json',
  'plain/LICENSE.md',
  'plain/index.js',
  'plain/lib/bare-parts/index.js',
  'plain/lib/docs/render.js',
  'plain/lib/test/index.js',
  'plain/node_modules/inner/index.js',
  'test/index.js',
];
const DELETED = [
  'bare-fs/index.js',
  'plain/node_modules/bare-events/index.js',
  '@scope/test/test/index.js',
  'plain/.github/workflows/ci.yml',
  'plain/README.md',
  'plain/__tests__/a.js',
  'plain/benchmarks/run.js',
  'plain/docs/index.html',
  'plain/example/a.js',
  'plain/index.d.ts',
  'plain/index.js.map',
  'plain/node_modules/inner/test/a.js',
  'plain/src/index.ts',
  'plain/tests/a.js',
  'test/test/a.js',
];

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-packages-'));
  for (const file of [...KEPT, ...DELETED]) {
    await mkdir(path.dirname(path.join(directory, file)), { recursive: true });
    await writeFile(path.join(directory, file), '');
  }
});
afterAll(() => rm(directory, { recursive: true }));

test('of a package stays what runs, and its licence', async () => {
  await execa(path.join(import.meta.dirname, 'prune-packages'), [directory]);
  const left = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = left.filter((entry) => entry.isFile());
  expect(
    files.map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name))).sort(),
  ).toEqual(KEPT);
});
