import {
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './host-tree.ts';
import { writeDurably } from './write-step.ts';

/** What needs root: owners. */

const USER = { uid: 1000, gid: 1000 };
let root: string;
const at = (name: string) => path.join(root, name);

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-directory-'));
  await mkdir(at('home/core'), { recursive: true });
  await chown(at('home/core'), USER.uid, USER.gid);
});
afterEach(() => rm(root, { recursive: true }));

test("a directory of root's that a user has moved to a name of theirs is not given to them", async () => {
  await mkdir(at('home/core/data/secret'), { recursive: true, mode: 0o700 });
  const step = { kind: 'directory', name: '/home/core/data', mode: 0o777, ...USER } as const;
  await expect(writeDurably({ root }, step)).rejects.toThrow(
    '/home/core/data: belongs to root and is not empty',
  );
  expect(await lstat(at('home/core/data'))).toMatchObject({ uid: 0, mode: 0o040700 });
  await rm(at('home/core/data/secret'), { recursive: true });
  await writeDurably({ root }, step);
  expect(await lstat(at('home/core/data'))).toMatchObject({ ...USER, mode: 0o040777 });
});

test('a link belongs to whom it should, and what it leads to stays as it is', async () => {
  await writeDurably({ root }, { kind: 'symlink', name: '/home/core/l', target: '../..', ...USER });
  expect(await lstat(at('home/core/l'))).toMatchObject(USER);
  expect(await lstat(root)).toMatchObject({ uid: 0, gid: 0 });
});

test('a copy has owner, mode, times and, where it is a link, the target', async () => {
  await writeFile(at('file'), 'text', { mode: 0o640 });
  await chown(at('file'), 3, 4);
  await utimes(at('file'), 100, 200);
  await symlink('somewhere', at('link'));
  await mkdir(at('kept'));
  await using tree = new HostTree({ root });
  const directory = await tree.parentOf('/file');
  for (const name of ['file', 'link']) {
    await directory.copyTo(name, at(`kept/${name}`));
    await rm(at(name));
    await directory.copyFrom(name, at(`kept/${name}`));
  }
  expect(await lstat(at('file'))).toMatchObject({
    uid: 3,
    gid: 4,
    mode: 0o100640,
    mtimeMs: 200_000,
    size: 4,
  });
  expect(await readlink(at('link'))).toBe('somewhere');
  expect((await readdir(root)).sort()).toEqual(['file', 'home', 'kept', 'link']);
});

test('a pipe comes back to a directory of root alone', async () => {
  await execa('mkfifo', [at('kept')]);
  await using tree = new HostTree({ root });
  await (await tree.parentOf('/etc')).copyFrom('pipe', at('kept'));
  expect((await lstat(at('pipe'))).isFIFO()).toBe(true);
  const home = await tree.parentOf('/home/core/pipe');
  await expect(home.copyFrom('pipe', at('kept'))).rejects.toThrow(
    '/home/core/pipe: a device, pipe or socket',
  );
});

test('a pipe is neither read nor waited for', async () => {
  await execa('mkfifo', [at('pipe')]);
  await using tree = new HostTree({ root });
  expect(await tree.entry('/pipe')).toEqual({ kind: 'special' });
  expect(await (await tree.parentOf('/pipe')).read('pipe', 10)).toBeUndefined();
});
