import { execFileSync } from 'node:child_process';
import { lstat, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { extractLayer, LayerRefused, writeAttributed } from './extract-layer.ts';

const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const file = (name: string, text = name, more: object = {}): LayerItem => ({
  type: 'file',
  path: name,
  mode: 0o640,
  ...own,
  content: Buffer.from(text),
  ...more,
});
const directory = (name: string, mode = 0o755, more: object = {}): LayerItem => ({
  type: 'directory',
  path: name,
  mode,
  ...own,
  ...more,
});
const symlink = (name: string, target: string): LayerItem => ({
  type: 'symlink',
  path: name,
  target,
  ...own,
});
const hardlink = (name: string, target: string): LayerItem => ({ type: 'hardlink', path: name, target });
const whiteout = (name: string): LayerItem => ({ type: 'whiteout', path: name });
const opaque = (name: string): LayerItem => ({ type: 'opaque', path: name });

async function emptyDirectory(): Promise<string> {
  const place = await mkdtemp(path.join(tmpdir(), 'layer-'));
  onTestFinished(() => rm(place, { recursive: true }));
  return place;
}

async function extract(...items: readonly LayerItem[]) {
  const root = await emptyDirectory();
  const extracted = await extractLayer(Readable.from(items), root, deadline(10_000));
  return { root, at: (name: string) => path.join(root, name), ...extracted };
}
const nothing = { whiteouts: [], opaque: [], implied: [], links: [] };

describe('a layer', () => {
  test('has no more than the mode of a directory that it does not name, also in a setgid one', async () => {
    const { at } = await extract(
      directory('/usr/team', 0o2775, { gid: own.uid === 0 ? 998 : own.gid }),
      file('/usr/team/deep/file'),
      directory('/usr/team/named', 0o750),
    );
    const attributes = async (name: string) => {
      const { gid, mode } = await lstat(at(`usr/team${name}`));
      return [gid, mode & 0o7777];
    };
    expect((await attributes(''))[1]).toBe(0o2775);
    expect(await attributes('/deep')).toEqual([own.gid, 0o755]);
    expect(await attributes('/deep/file')).toEqual([own.gid, 0o640]);
    expect(await attributes('/named')).toEqual([own.gid, 0o750]);
  });

  test('becomes a directory with its modes, /etc as /usr/etc', async () => {
    const { at, notes } = await extract(
      directory('/'),
      directory('/etc', 0o711),
      file('/etc/app.conf', 'text'),
      symlink('/etc/link', 'app.conf'),
      directory('/usr/share', 0o750),
    );
    expect(await readFile(at('usr/etc/app.conf'), 'utf8')).toBe('text');
    expect((await lstat(at('usr/etc/app.conf'))).mode & 0o7777).toBe(0o640);
    expect((await lstat(at('usr/etc'))).mode & 0o7777).toBe(0o711);
    expect((await lstat(at('usr/share'))).mode & 0o7777).toBe(0o750);
    expect(await readlink(at('usr/etc/link'))).toBe('app.conf');
    expect(notes).toEqual({ ...nothing, implied: ['usr'] });
  });

  test('notes which directories it does not name itself, in order', async () => {
    const { at, notes } = await extract(
      file('/opt/z/a/file'),
      file('/opt/b/file'),
      directory('/opt/z', 0o700),
    );
    expect(notes.implied).toEqual(['opt', 'opt/b', 'opt/z/a']);
    expect((await lstat(at('opt/z'))).mode & 0o7777).toBe(0o700);
    expect((await lstat(at('opt/b'))).mode & 0o7777).toBe(0o755);
  });

  test('notes what it takes away, and writes nothing for it', async () => {
    const { root, notes } = await extract(opaque('/'), whiteout('/etc/old'), opaque('/opt/app'));
    expect(notes).toEqual({ ...nothing, whiteouts: ['usr/etc/old'], opaque: ['opt/app'] });
    expect(await readdir(root)).toEqual([]);
  });

  test('has hard links to its own files, and notes those to files of lower layers', async () => {
    const { at, notes } = await extract(
      file('/etc/one'),
      hardlink('/etc/two', '/etc/one'),
      hardlink('/opt/three', './etc/below'),
    );
    expect((await lstat(at('usr/etc/two'))).ino).toBe((await lstat(at('usr/etc/one'))).ino);
    expect(notes.links).toEqual([{ path: 'opt/three', target: 'usr/etc/below' }]);
  });

  test.each(['dev', 'proc', 'sys', 'run', 'tmp'])(
    'leaves out what lies in /%s, and keeps the directory',
    async (name) => {
      const { root, notes } = await extract(
        directory(`/${name}`),
        file(`/${name}/file`),
        whiteout(`/${name}/gone`),
      );
      expect(await readdir(root)).toEqual([name]);
      expect(await readdir(path.join(root, name))).toEqual([]);
      expect(notes).toEqual(nothing);
    },
  );

  test('keeps what only looks like a mount point', async () => {
    const { at } = await extract(file('/srv/run/file'));
    expect(await readdir(at('srv/run'))).toEqual(['file']);
  });

  test('may be read in pieces', async () => {
    const pieces = [Buffer.from('one '), Buffer.from('two')];
    const { at } = await extract(file('/a', '', { content: Readable.from(pieces) }));
    expect(await readFile(at('a'), 'utf8')).toBe('one two');
  });

  test('is extracted no further once that is to end', async () => {
    const root = await emptyDirectory();
    const ended = AbortSignal.abort(new Error('ended'));
    await expect(extractLayer(Readable.from([file('/a')]), root, ended)).rejects.toThrow('ended');
    expect(await readdir(root)).toEqual([]);
  });

  test.each<[string, readonly LayerItem[], string]>([
    ['a file twice', [file('/a'), file('/a')], '/a: appears twice in one layer'],
    ['a directory in place of a file', [file('/a'), directory('/a')], '/a: appears twice'],
    ['a file in place of a directory', [directory('/a'), file('/a')], '/a: appears twice'],
    [
      'a path through a link',
      [symlink('/a', '/tmp'), file('/a/b')],
      '/a/b: leads through /a, which is not a directory',
    ],
    ['a path through a file', [file('/a'), file('/a/b')], '/a/b: leads through /a'],
    ['a path out of the tree', [file('/a/../../b')], 'a layer\'s path has no ".."'],
    ['a path with NUL', [file('/a\0b')], 'no NUL'],
    ['a hard link out of the tree', [hardlink('/a', '../b')], 'a layer\'s path has no ".."'],
    [
      'a hard link to a directory',
      [directory('/a'), hardlink('/b', '/a')],
      '/b: hard link to /a, which is not a file',
    ],
    ['a hard link to a link', [symlink('/a', 'x'), hardlink('/b', '/a')], '/b: hard link to /a'],
    ['a file as its root', [file('/')], "a layer's root can't be a file"],
    ['a whiteout of its root', [whiteout('/')], "a layer's root can't be a whiteout"],
  ])('that has %s is refused', async (_name, items, message) => {
    const refused = extract(...items);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow(LayerRefused);
  });

  test('may name a directory twice', async () => {
    const { at } = await extract(directory('/a', 0o755), directory('/a', 0o700));
    expect((await lstat(at('a'))).mode & 0o7777).toBe(0o700);
  });
});

describe('extended attributes', () => {
  const capability: Readonly<Record<string, Buffer>> = { 'security.capability': Buffer.from('cap') };
  const xattrs = {
    ...capability,
    'security.selinux': Buffer.from('label'),
    'trusted.overlay': Buffer.from('x'),
  };

  test('are those that belong to a file wherever it is', async () => {
    const mine: Readonly<Record<string, Buffer>> = {
      'user.mine': Buffer.from('1'),
      'security.ima': Buffer.from('2'),
    };
    const { attributes } = await extract(
      file('/etc/ping', 'x', { xattrs }),
      directory('/opt', 0o755, { xattrs: mine }),
      file('/plain', 'x', { xattrs: { 'security.selinux': Buffer.from('label') } }),
      hardlink('/etc/other', '/etc/ping'),
      hardlink('/etc/unknown', '/below'),
      symlink('/link', 'x'),
    );
    expect(Object.fromEntries(attributes)).toEqual({
      'usr/etc/ping': capability,
      opt: mine,
      'usr/etc/other': capability,
    });
  });

  test('are written as an archive of what has them', async () => {
    const { root, attributes } = await extract(
      file('/ping', 'program', { xattrs, mode: 0o755 }),
      directory('/opt', 0o710, { xattrs: capability }),
      file('/plain'),
    );
    const archive = path.join(await emptyDirectory(), 'attributed.tar');
    await writeAttributed(archive, root, attributes);
    const list = execFileSync('tar', ['--numeric-owner', '-tvf', archive], { encoding: 'utf8' });
    const lines = list
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/));
    const name = path.basename(root);
    expect(lines.map(([mode, owner]) => [mode, owner])).toEqual([
      ['-rwxr-xr-x', `${own.uid}/${own.gid}`],
      ['drwx--x---', `${own.uid}/${own.gid}`],
    ]);
    expect(lines.map((line) => line.at(-1))).toEqual([`${name}/ping`, `${name}/opt/`]);
    const text = execFileSync('tar', ['-xOf', archive, `${name}/ping`], { encoding: 'utf8' });
    expect(text).toBe('program');
    expect((await readFile(archive)).includes('SCHILY.xattr.security.capability=cap')).toBe(true);
  });
});
