import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { imageEtcIn, inImageEtc } from './image-tree.ts';

async function rootWith(...directories: readonly string[]): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'image-tree-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const directory of directories) await mkdir(path.join(root, directory), { recursive: true });
  return root;
}

test.each([
  ['a deployment of ostree', ['usr/etc', 'etc'], '/usr/etc'],
  ['a root without any', [], '/usr/etc'],
  ['a root whose image is mounted apart', ['usr', 'etc', 'run/shale/image/etc'], '/run/shale/image/etc'],
])('finds the image’s own version of /etc in %s', async (_what, directories, expected) => {
  expect(await imageEtcIn(await rootWith(...directories))).toBe(expected);
});

test('a file in the way is no image', async () => {
  const root = await rootWith('run');
  await writeFile(path.join(root, 'run/shale'), '');
  expect(await imageEtcIn(root)).toBe('/usr/etc');
});

test('a name of /etc is looked for there', () => {
  expect(inImageEtc('/usr/etc', '/etc/ssh/sshd_config')).toBe('/usr/etc/ssh/sshd_config');
});
