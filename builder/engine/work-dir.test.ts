import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { removeLeftovers, WORK_PREFIX } from './work-dir.ts';

const UNPACKED = `${WORK_PREFIX}abc`;
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-work-dir-'));
  await mkdir(path.join(dir, UNPACKED));
  await writeFile(path.join(dir, UNPACKED, '0.tar'), 'layer');
  await mkdir(path.join(dir, `of-others-${UNPACKED}`));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});

test('what a builder that was killed had unpacked is deleted from its own directory, and nothing else', async () => {
  await removeLeftovers(dir);
  expect(await readdir(dir)).toEqual([`of-others-${UNPACKED}`]);
});

test.each(['', '/'])("what is in the machine's directory for temporary files stays: %j", async (end) => {
  vi.stubEnv('TMPDIR', dir);
  await removeLeftovers(`${dir}${end}`);
  expect(await readdir(dir)).toContain(UNPACKED);
});
