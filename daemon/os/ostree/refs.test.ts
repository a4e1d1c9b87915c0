import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listRefs } from './refs.ts';

let sysroot: string;
beforeEach(async () => {
  sysroot = await mkdtemp(path.join(tmpdir(), 'shale-refs-'));
});
afterEach(() => rm(sysroot, { recursive: true }));

async function put(ref: string): Promise<string> {
  const file = path.join(sysroot, 'ostree/repo/refs/heads', ref);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${'a'.repeat(64)}\n`);
  return file;
}

test('refs below a prefix are listed in full, at any depth', async () => {
  await put('shale/image/1');
  await put('shale/layer/deep/2');
  await put('shale2/image/1');
  await put('ostree/0/1/0');
  expect(await listRefs(sysroot, 'shale')).toEqual(new Set(['shale/image/1', 'shale/layer/deep/2']));
  expect(await listRefs(sysroot, 'shale/layer')).toEqual(new Set(['shale/layer/deep/2']));
});

test('an alias is a ref, too', async () => {
  const file = await put('shale/image/1');
  await symlink(path.basename(file), path.join(path.dirname(file), 'alias'));
  expect(await listRefs(sysroot, 'shale')).toEqual(new Set(['shale/image/1', 'shale/image/alias']));
});

test.each(['no repository', 'no ref', 'an empty directory'])('%s has no refs', async (what) => {
  if (what === 'no ref') await put('ostree/0/1/0');
  if (what === 'an empty directory')
    await mkdir(path.join(sysroot, 'ostree/repo/refs/heads/shale/image'), { recursive: true });
  expect(await listRefs(sysroot, 'shale')).toEqual(new Set());
});

test('what can not be read is no answer', async () => {
  const file = await put('shale');
  await rm(file);
  await symlink('shale', file);
  await expect(listRefs(sysroot, 'shale')).rejects.toThrow('ELOOP');
});
