import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { mergeNextEtc } from './merge-next-etc.ts';

async function treeWith(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'merge-next-etc-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), content);
  }
  return root;
}

test('the next boot’s /etc becomes a fresh one, whatever it was', async () => {
  const root = await treeWith({
    'run/shale/image/etc/same.conf': 'default\n',
    'run/shale/image/etc/edited.conf': 'default\n',
    'run/shale/image/etc/managed.conf': 'default\n',
    'run/shale/image/etc/removed.conf': 'default\n',
    'etc/same.conf': 'default\n',
    'etc/edited.conf': 'by the admin\n',
    'etc/managed.conf': 'by Shale\n',
    'etc/added.conf': 'by the admin\n',
    'etc/.updated': '',
  });
  const next = await treeWith({
    'run/shale/image/etc/same.conf': 'new default\n',
    'run/shale/image/etc/edited.conf': 'new default\n',
    'run/shale/image/etc/managed.conf': 'new default\n',
    'run/shale/image/etc/removed.conf': 'new default\n',
    'run/shale/image/etc/new.conf': 'new\n',
    'etc/same.conf': 'merged long ago\n',
    'etc/stale.conf': 'edited in another deployment\n',
  });
  const relabelled: string[] = [];
  const relabel = async (tree: string, names: readonly string[]) => {
    expect(tree).toBe(next);
    relabelled.push(...names);
  };
  const managed = new Map([['/etc/managed.conf', await contentDigestAt(root, '/etc/managed.conf')]]);
  await mergeNextEtc({ root, next, relabel }, managed, deadline(30_000));
  const files: Record<string, string> = {};
  for (const name of (await readdir(path.join(next, 'etc'))).sort()) {
    files[name] = await readFile(path.join(next, 'etc', name), 'utf8');
  }
  expect(files).toEqual({
    'added.conf': 'by the admin\n',
    'edited.conf': 'by the admin\n',
    'managed.conf': 'new default\n',
    'new.conf': 'new\n',
    'same.conf': 'new default\n',
  });
  expect(relabelled).toEqual(Object.keys(files).map((name) => `/etc/${name}`));
});
