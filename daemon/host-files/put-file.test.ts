import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { removeFile } from './put-file.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-put-file-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc/own'), { recursive: true });
  await writeFile(path.join(root, 'etc/own/file'), '');
});

const names = async () => (await readdir(root, { recursive: true })).sort();

test.each<[string, string, readonly string[]]>([
  ['its directory with it where it was the last', '/etc/own/file', []],
  ['nothing where it is missing among others', '/etc/own/gone', ['etc', 'etc/own', 'etc/own/file']],
  ['nothing where its directory is missing', '/usr/gone/file', ['etc', 'etc/own', 'etc/own/file']],
])('removing a file removes %s', async (_what, name, left) => {
  await removeFile(root, name);
  expect(await names()).toEqual(left.length === 0 ? ['etc'] : left);
});

test('a directory that has another file stays', async () => {
  await writeFile(path.join(root, 'etc/own/other'), '');
  await removeFile(root, '/etc/own/file');
  expect(await names()).toEqual(['etc', 'etc/own', 'etc/own/other']);
});
