import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { makeWritable, unlockUsr } from './writable-mounts.ts';

// What is read-only is tested where the tests may mount: writable-mounts.integration.test.ts.
const signal = deadline(30_000);
const nothing: RunOsCommand = async (command) => {
  throw new Error(`${command.join(' ')}: not expected`);
};

test('nothing is done where it can be written to already', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'writable-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await makeWritable(root, { onHost: true, run: nothing, signal });
  await makeWritable(root, { onHost: false, run: nothing, signal });
  await unlockUsr(path.dirname(root), nothing, signal).catch(() => undefined);
});

test('what can not be looked at at all is not taken for read-only', async () => {
  await expect(makeWritable('/nowhere/sysroot', { onHost: false, run: nothing, signal })).rejects.toThrow(
    'ENOENT',
  );
  await expect(unlockUsr('/nowhere', nothing, signal)).rejects.toThrow('ENOENT');
});
