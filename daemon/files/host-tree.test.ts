import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HostTree } from './host-tree.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

/** Directories that everybody can write to stand for a user's: both are not root's alone. */

let root: string;
const at = (name: string) => path.join(root, name);
const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-tree-'));
  await mkdir(at('var/home/core/own/deep'), { recursive: true });
  await mkdir(at('etc/systemd'), { recursive: true });
  await symlink('var/home', at('home'));
  await symlink('/var/home', at('absolute'));
  await symlink('../../../../var', at('var/up'));
  await symlink('loop', at('loop'));
  await symlink('/etc/passwd', at('last'));
  await writeFile(at('etc/file'), '');
  await symlink('../../../etc', at('var/home/core/link'));
  await chmod(at('var/home/core'), 0o777);
});
afterEach(() => rm(root, { recursive: true }));

describe('locate', () => {
  it.each<[string, string, readonly string[]]>([
    ['/home/core/x', '/var/home/core/x', []],
    ['/absolute/core/x', '/var/home/core/x', []],
    ['/var/up/home/core', '/var/home/core', []],
    ['/../../x', '/x', []],
    ['/last', '/last', []],
    ['/home/core/link', '/var/home/core/link', []],
    ['/home/missing/deep/x', '/var/home/missing/deep/x', ['/var/home/missing', '/var/home/missing/deep']],
    ['/etc/file/x', '/etc/file/x', ['/etc/file']],
  ])('%s lies at %s', async (name, expected, missingParents) => {
    await using tree = new HostTree({ root });
    expect(await tree.locate(name)).toMatchObject({ name: expected, missingParents });
  });

  it('says what is in the way', async () => {
    await using tree = new HostTree({ root });
    expect((await tree.locate('/etc/file/x')).blockedBy).toBe('/etc/file');
    expect((await tree.locate('/home/core/own/x')).blockedBy).toBeUndefined();
  });

  it('does not follow a link that is about to go', async () => {
    await using tree = new HostTree({ root });
    const location = await tree.locate('/home/x', new Map([['/home', undefined]]));
    expect(location).toMatchObject({ name: '/home/x', missingParents: ['/home'], blockedBy: '/home' });
  });

  it('gives up on a loop, and takes no relative path', async () => {
    await using tree = new HostTree({ root });
    await expect(tree.locate('/loop/x')).rejects.toThrow('more than 40 symbolic links');
    await expect(tree.locate('etc/x')).rejects.toThrow('not an absolute path');
  });

  it('follows as many links as a kernel does, and not one more', async () => {
    await symlink('etc', at('link1'));
    for (let link = 2; link <= 41; link += 1) await symlink(`link${link - 1}`, at(`link${link}`));
    await using tree = new HostTree({ root });
    expect((await tree.locate('/link40/file')).name).toBe('/etc/file');
    await expect(tree.locate('/link41/file')).rejects.toThrow('more than 40 symbolic links');
  });

  it('calls what lies below a mount by the name of the mount, and follows a link beside it', async () => {
    await rename(at('var'), at('shared'));
    await symlink('shared', at('var'));
    await symlink('shared', at('srv'));
    await using tree = new HostTree({ root });
    expect(await tree.locate('/var/home/x')).toMatchObject({ name: '/var/home/x', missingParents: [] });
    expect(await tree.locate('/srv/home/x')).toMatchObject({ name: '/shared/home/x', missingParents: [] });
  });

  it.each(['/home/core/link/x', '/home/core/own/link/x', '/home/core/own/deep/link/x'])(
    'follows no link below a directory that others can write to: %s',
    async (name) => {
      const link = path.posix.dirname(name);
      await symlink('/etc', at(`var${link}`)).catch(() => undefined);
      await using tree = new HostTree({ root });
      await expect(tree.locate(name)).rejects.toThrow(`/var${link} is a symbolic link`);
    },
  );

  const parentsOf = (name: string): string[] => {
    const parent = path.posix.dirname(name);
    return parent === '/' ? [] : [...parentsOf(parent), parent];
  };
  it('does not take a link that leads out of the root for a mount', async () => {
    const outside = await mkdtemp(path.join(tmpdir(), 'shale-outside-'));
    await rename(at('var'), at('former'));
    await symlink(outside, at('var'));
    await using tree = new HostTree({ root });
    expect(await tree.locate('/var/x')).toMatchObject({
      name: `${outside}/x`,
      missingParents: parentsOf(`${outside}/x`),
    });
    await rm(outside, { recursive: true });
  });

  it('finds /var in the running root while a deployment is written to', async () => {
    await mkdir(at('deployment/etc'), { recursive: true });
    await mkdir(at('deployment/var'), { recursive: true });
    await writeFile(at('var/x'), 'running');
    await using tree = new HostTree({ root: at('deployment'), varRoot: root });
    expect(await tree.stat((await tree.locate('/var/x')).name)).toMatchObject({ size: 7 });
    expect(await tree.stat((await tree.locate('/etc/file')).name)).toBeUndefined();
  });
});

describe('a step', () => {
  const file = (name: string): WriteStep => ({
    kind: 'file',
    name,
    contents: Buffer.from('new'),
    mode: 0o600,
    ...owner,
  });

  it.each<[string, WriteStep]>([
    ['file', file('/var/home/core/link/x')],
    ['directory', { kind: 'directory', name: '/var/home/core/link', mode: 0o777, ...owner }],
    ['directory below', { kind: 'directory', name: '/var/home/core/link/x', mode: 0o777, ...owner }],
    ['parent', { kind: 'directory', name: '/var/home/core/link', isParent: true, mode: 0o777, ...owner }],
    ['symlink', { kind: 'symlink', name: '/var/home/core/link/x', target: 'x', ...owner }],
    ['hard link', { kind: 'hard link', name: '/etc/x', source: '/var/home/core/link/file' }],
    ['root link', file('/home/core/x')],
    ['dots', file('/var/home/../../etc/x')],
  ])('is never taken through a link: %s', async (_what, step) => {
    const before = await lstat(at('etc'));
    await expect(takeSteps({ root }, [step])).rejects.toThrow(/expected a directory|simplest form/);
    expect((await readdir(at('etc'))).sort()).toEqual(['file', 'systemd']);
    expect(await lstat(at('etc'))).toMatchObject({ mode: before.mode, uid: before.uid });
  });

  it.each<WriteStep>([
    { kind: 'remove', name: '/var/home/core/link/file' },
    { kind: 'remove directory', name: '/var/home/core/link/systemd', evenIfNotEmpty: 'fail' },
  ])('has nothing to remove behind a link: $kind', async (step) => {
    await takeSteps({ root }, [step]);
    expect((await readdir(at('etc'))).sort()).toEqual(['file', 'systemd']);
  });

  it('goes to the directory that was opened, wherever its name leads by now', async () => {
    await using tree = new HostTree({ root });
    const directory = await tree.parentOf('/var/home/core/own/deep/x');
    await rename(at('var/home/core/own'), at('var/home/core/moved'));
    await symlink('../../../etc', at('var/home/core/own'));
    await directory.replaceFile('x', (handle) => handle.writeFile('new'));
    expect(await readdir(at('var/home/core/moved/deep'))).toEqual(['x']);
  });

  it('names the path as the host knows it when it fails', async () => {
    await mkdir(at('etc/full/x'), { recursive: true });
    const failures = await Promise.all(
      [
        file('/etc/full'),
        { kind: 'remove directory', name: '/etc/full', evenIfNotEmpty: 'fail' } as const,
      ].map((step) => takeSteps({ root }, [step]).catch((error: Error) => error.message)),
    );
    for (const message of failures) expect(message).toMatch(/^\/etc\/full: E[A-Z]+: [^/]+$/);
    await expect(takeSteps({ root }, [file('/etc/none/x')])).rejects.toThrow(
      '/etc/none/x: there is no directory /etc/none',
    );
  });

  it('leaves nothing behind when it fails, and takes over from one that was killed', async () => {
    await writeFile(at('etc/.shale-new.x'), 'half');
    await takeSteps({ root }, [file('/etc/x')]);
    await mkdir(at('etc/directory'));
    await expect(takeSteps({ root }, [file('/etc/directory')])).rejects.toThrow('/etc/directory: E');
    expect((await readdir(at('etc'))).sort()).toEqual(['directory', 'file', 'systemd', 'x']);
    expect((await stat(at('etc/x'))).mode & 0o7777).toBe(0o600);
  });

  it('leaves a parent alone that somebody else has made meanwhile', async () => {
    await chmod(at('etc/systemd'), 0o711);
    await takeSteps({ root }, [
      { kind: 'directory', name: '/etc/systemd', isParent: true, mode: 0o777, ...owner },
    ]);
    expect((await stat(at('etc/systemd'))).mode & 0o7777).toBe(0o711);
  });
});

describe('a directory', () => {
  it('is closed once its tree is at another, and with its tree', async () => {
    const openedBelow = async (name: string) => {
      const places = (await readdir('/proc/self/fd')).map((fd) => `/proc/self/fd/${fd}`);
      const opened = await Promise.all(places.map((place) => readlink(place).catch(() => '')));
      return opened.filter((place) => place.startsWith(at(name))).map((place) => path.relative(root, place));
    };
    const tree = new HostTree({ root });
    await tree.stat('/var/home/core/own/x');
    expect((await openedBelow('var')).sort()).toEqual([
      'var',
      'var/home',
      'var/home/core',
      'var/home/core/own',
    ]);
    await tree.stat('/etc/systemd/x');
    expect(await openedBelow('var')).toEqual([]);
    await tree[Symbol.asyncDispose]();
    expect(await openedBelow('')).toEqual([]);
  });

  it('is closed only when nothing is done in it any more', async () => {
    let written: Promise<void>;
    {
      await using tree = new HostTree({ root });
      const directory = await tree.parentOf('/etc/x');
      written = directory.replaceFile('x', async (handle) => {
        await new Promise(setImmediate);
        await handle.writeFile('new');
      });
    }
    await written;
    expect((await stat(at('etc/x'))).size).toBe(3);
  });

  it('that is closed does nothing', async () => {
    const tree = new HostTree({ root });
    const directory = await tree.parentOf('/etc/x');
    await tree[Symbol.asyncDispose]();
    await expect(directory.remove('file')).rejects.toThrow('no longer open');
    await expect(tree.directory('/etc')).rejects.toThrow('no longer open');
    expect((await readdir(at('etc'))).sort()).toEqual(['file', 'systemd']);
  });

  it('that is being opened when its tree is closed is closed, too', async () => {
    const tree = new HostTree({ root });
    const opening = tree.directory('/var/home/core');
    await tree[Symbol.asyncDispose]();
    await expect(opening).rejects.toThrow('no longer open');
  });

  it('has a file that nobody else may read until its mode is set', async () => {
    await using tree = new HostTree({ root });
    const directory = await tree.parentOf('/etc/x');
    await directory.replaceFile('x', (handle) => handle.writeFile('new'));
    expect((await stat(at('etc/x'))).mode & 0o777).toBe(0o600);
  });

  it.each(['', '.', '..', 'a/b', '../file'])('does nothing by the name %j', async (name) => {
    await using tree = new HostTree({ root });
    const directory = await tree.directory('/etc');
    for (const act of [
      () => directory?.stat(name),
      () => directory?.read(name, 1),
      () => directory?.child(name),
      () => directory?.remove(name),
      () => directory?.replaceFile(name, (handle) => handle.writeFile('new')),
    ]) {
      await expect(act()).rejects.toThrow('is not the name of a file in it');
    }
    expect((await readdir(at('etc'))).sort()).toEqual(['file', 'systemd']);
  });
});
