import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { recordSyncs } from '../../test/fixtures/synced-files.ts';
import { putFile, removeFileOfOwnDirectory } from './put-file.ts';

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
  await removeFileOfOwnDirectory(root, name);
  expect(await names()).toEqual(left.length === 0 ? ['etc'] : left);
});

test('a directory that has another file stays', async () => {
  await writeFile(path.join(root, 'etc/own/other'), '');
  await removeFileOfOwnDirectory(root, '/etc/own/file');
  expect(await names()).toEqual(['etc', 'etc/own', 'etc/own/other']);
});

test('a removal is durable', async () => {
  const synced = await recordSyncs();
  await removeFileOfOwnDirectory(root, '/etc/own/file');
  expect(synced).toEqual([path.join(root, 'etc/own'), path.join(root, 'etc')]);
});

// Nobody else can write a file of root's.
test.skipIf(process.getuid?.() !== 0)(
  'a file is written whole with what is missing above it, all of it root’s',
  async () => {
    await chmod(path.join(root, 'etc/own'), 0o711);
    const synced = await recordSyncs();
    await putFile(root, '/etc/own/a/b/file', { contents: Buffer.from('text'), mode: 0o640 });
    expect(await readFile(path.join(root, 'etc/own/a/b/file'), 'utf8')).toBe('text');
    const modes = await Promise.all(
      ['own', 'own/a', 'own/a/b', 'own/a/b/file'].map(
        async (name) => (await stat(path.join(root, 'etc', name))).mode,
      ),
    );
    expect(modes.map((mode) => mode & 0o7777)).toEqual([0o711, 0o755, 0o755, 0o640]);
    expect(synced.slice(-2)).toEqual([
      path.join(root, 'etc/own/a/b/.shale-new.file'),
      path.join(root, 'etc/own/a/b'),
    ]);
    const { uid, gid } = await stat(path.join(root, 'etc/own/a/b/file'));
    expect([uid, gid]).toEqual([0, 0]);
  },
);
