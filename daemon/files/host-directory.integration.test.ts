/** Owners of real files, which only root may set. */
import { createHash } from 'node:crypto';
import {
  chmod,
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
import { putFile } from './put-file.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

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
  await expect(takeSteps({ root }, [step])).rejects.toThrow(
    '/home/core/data: belongs to root and is not empty',
  );
  expect(await lstat(at('home/core/data'))).toMatchObject({ uid: 0, mode: 0o040700 });
  await rm(at('home/core/data/secret'), { recursive: true });
  await takeSteps({ root }, [step]);
  expect(await lstat(at('home/core/data'))).toMatchObject({ ...USER, mode: 0o040777 });
});

test('a link belongs to whom it should, and what it leads to stays as it is', async () => {
  await takeSteps({ root }, [{ kind: 'symlink', name: '/home/core/l', target: '../..', ...USER }]);
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

test('what is made in a setgid directory has the group and the mode that it should, not those of the directory', async () => {
  await mkdir(at('team/full'), { recursive: true });
  await chown(at('team'), 0, USER.gid);
  await chmod(at('team'), 0o2775);
  await writeFile(at('copy'), 'text', { mode: 0o640 });
  // The kernel gives the group of such a directory to what is made in it, and the bit to directories.
  await mkdir(at('team/control'));
  expect(await lstat(at('team/control'))).toMatchObject({ gid: USER.gid, mode: 0o042755 });
  const root0 = { uid: 0, gid: 0 };
  const steps: readonly WriteStep[] = [
    { kind: 'directory', name: '/team/directory', mode: 0o750, ...root0 },
    { kind: 'directory', name: '/team/parent', mode: 0o755, isParent: true, ...root0 },
    { kind: 'directory', name: '/team/parent/setgid', mode: 0o2755, uid: 0, gid: 3 },
    { kind: 'directory', name: '/team/parent/setgid/not', mode: 0o755, ...root0 },
    { kind: 'directory', name: '/team/control', mode: 0o755, ...root0 },
    { kind: 'file', name: '/team/file', mode: 0o640, contents: Buffer.from('text'), ...root0 },
    { kind: 'file', name: '/team/setgid', mode: 0o2755, contents: Buffer.from('text'), uid: 0, gid: 3 },
    { kind: 'symlink', name: '/team/link', target: 'file', ...root0 },
    { kind: 'restore', name: '/team/restored', source: at('copy') },
  ];
  for (const step of steps) await takeSteps({ root }, [step]);
  const attributes = async (name: string) => {
    const { uid, gid, mode } = await lstat(at(name));
    return `${name} ${uid}:${gid} ${(mode & 0o7777).toString(8)}`;
  };
  expect(await Promise.all(steps.map(({ name }) => attributes(name.slice(1))))).toEqual([
    'team/directory 0:0 750',
    'team/parent 0:0 755',
    'team/parent/setgid 0:3 2755',
    'team/parent/setgid/not 0:0 755',
    'team/control 0:0 755',
    'team/file 0:0 640',
    'team/setgid 0:3 2755',
    'team/link 0:0 777',
    'team/restored 0:0 640',
  ]);

  await putFile(root, '/team/put/deep/file', { contents: Buffer.from('text'), mode: 0o600 });
  const { signal } = new AbortController();
  const sha256 = createHash('sha256').update('text').digest('hex');
  await takeSteps(
    { root },
    [
      { kind: 'directory', name: '/team/live', mode: 0o755, ...root0 },
      { kind: 'copy', name: '/team/live/file', source: at('copy'), sha256, mode: 0o640, ...root0 },
      { kind: 'symlink', name: '/team/live/link', target: 'file', ...root0 },
    ],
    { signal },
  );
  const live = ['put', 'put/deep', 'put/deep/file', 'live', 'live/file', 'live/link'];
  expect(await Promise.all(live.map((name) => attributes(`team/${name}`)))).toEqual([
    'team/put 0:0 755',
    'team/put/deep 0:0 755',
    'team/put/deep/file 0:0 600',
    'team/live 0:0 755',
    'team/live/file 0:0 640',
    'team/live/link 0:0 777',
  ]);
});
