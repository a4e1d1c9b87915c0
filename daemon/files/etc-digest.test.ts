import { chmod, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { etcDigest } from './etc-trees.ts';

async function tree() {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-etc-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc/dir'), { recursive: true });
  await writeFile(path.join(root, 'etc/dir/file'), 'one\n');
  await symlink('dir/file', path.join(root, 'etc/link'));
  return root;
}

test.each<[string, (root: string) => Promise<void>, boolean]>([
  ['nothing', async () => undefined, true],
  ['the time of a file', (root) => utimes(path.join(root, 'etc/dir/file'), 1, 1), true],
  ['a file with what it has', (root) => writeFile(path.join(root, 'etc/dir/file'), 'one\n'), true],
  ['something outside', (root) => writeFile(path.join(root, 'other'), 'x'), true],
  ['a file', (root) => writeFile(path.join(root, 'etc/dir/file'), 'two\n'), false],
  ['a mode', (root) => chmod(path.join(root, 'etc/dir/file'), 0o600), false],
  ['a new file', (root) => writeFile(path.join(root, 'etc/new'), ''), false],
  ['a new directory', (root) => mkdir(path.join(root, 'etc/new')), false],
  ['a file that goes', (root) => rm(path.join(root, 'etc/dir/file')), false],
  [
    'a link',
    async (root) => {
      await rm(path.join(root, 'etc/link'));
      await symlink('dir', path.join(root, 'etc/link'));
    },
    false,
  ],
])('of an /etc where somebody changed %s', async (_what, change, isSame) => {
  const root = await tree();
  const before = await etcDigest(root, deadline(10_000));
  await change(root);
  expect((await etcDigest(root, deadline(10_000))) === before).toBe(isSame);
});
