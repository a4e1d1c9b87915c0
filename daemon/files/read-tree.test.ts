import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { HostDirectory } from './host-directory.ts';
import { compareTrees, contentDigestAt, isSameFile, readTree } from './read-tree.ts';
import { ABSENT } from './tree-entry.ts';

const signal = deadline(30_000);

let dir: string;
const at = (name: string) => path.join(dir, name);
const put = async (name: string, text: string) => {
  await mkdir(path.dirname(at(name)), { recursive: true });
  await writeFile(at(name), text);
};
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-read-tree-'));
});
afterEach(() => rm(dir, { recursive: true }));

describe('a tree that is read', () => {
  test("has every entry below it by the host's name, and follows no link", async () => {
    await put('top/a/file', 'text');
    await put('outside/secret', 'text');
    await symlink('../outside', at('top/link'));
    const tree = await readTree(at('top'), '/etc', signal);
    expect([...tree.keys()].toSorted()).toEqual(['/etc/a', '/etc/a/file', '/etc/link']);
    expect(tree.get('/etc/a/file')).toMatchObject({ kind: 'file' });
    expect(tree.get('/etc/link')).toMatchObject({ kind: 'symlink', target: '../outside' });
  });

  test('has nothing below a directory that somebody replaces meanwhile', async () => {
    await put('top/a/file', 'text');
    await put('outside/secret', 'text');
    const entry = HostDirectory.prototype.entry;
    const spy = vi.spyOn(HostDirectory.prototype, 'entry').mockImplementation(async function (
      this: HostDirectory,
      base,
    ) {
      const found = await entry.call(this, base);
      if (base === 'a')
        await rm(at('top/a'), { recursive: true }).then(() => symlink('../outside', at('top/a')));
      return found;
    });
    onTestFinished(() => spy.mockRestore());
    expect([...(await readTree(at('top'), '/etc', signal)).keys()]).toEqual(['/etc/a']);
  });

  test('fails of a directory that can not be read', async () => {
    await put('top/a/file', 'text');
    const failure = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    const spy = vi.spyOn(HostDirectory.prototype, 'child').mockRejectedValue(failure);
    onTestFinished(() => spy.mockRestore());
    await expect(readTree(at('top'), '/etc', signal)).rejects.toBe(failure);
  });

  test('is empty where there is no such directory', async () => {
    await put('file', 'text');
    expect(await readTree(at('none'), '/etc', signal)).toEqual(new Map());
    expect(await readTree(at('file/below'), '/etc', signal)).toEqual(new Map());
  });

  test('is an error for anything else, and ends with the signal', async () => {
    await put('top/file', 'text');
    await expect(readTree(`${at('top')}\0`, '/etc', signal)).rejects.toThrow();
    await expect(readTree(at('top'), '/etc', AbortSignal.abort())).rejects.toThrow(/abort/);
  });
});

describe('two trees', () => {
  const compare = async (skip: readonly string[] = []) => {
    const { current, target } = await compareTrees(at('a'), at('b'), '/usr', new Set(skip), signal);
    const names = (tree: typeof current) =>
      [...tree]
        .filter(([, { kind }]) => kind !== 'directory')
        .map(([name]) => name)
        .toSorted();
    return { current: names(current), target: names(target) };
  };

  test('differ where a file was added, removed or changed, however deep', async () => {
    for (const [name, text] of Object.entries({
      'a/x/same': '1',
      'b/x/same': '1',
      'a/x/y/changed': '1',
      'b/x/y/changed': '2',
    })) {
      await put(name, text);
    }
    await put('a/gone/file', '1');
    await put('b/new/file', '1');
    expect(await compare()).toEqual({
      current: ['/usr/gone/file', '/usr/x/y/changed'],
      target: ['/usr/new/file', '/usr/x/y/changed'],
    });
  });

  test('differ where one has a file and the other a directory', async () => {
    await put('a/x', '1');
    await put('b/x/below', '1');
    expect(await compare()).toEqual({ current: ['/usr/x'], target: ['/usr/x/below'] });
  });

  test('are the same where they share an inode, which is not read again', async () => {
    await put('a/file', '1');
    await mkdir(at('b'));
    await link(at('a/file'), at('b/file'));
    expect(await compare()).toEqual({ current: [], target: [] });
    await put('a/only', '1');
    expect(await compare()).toEqual({ current: ['/usr/only'], target: [] });
  });

  test('are not compared below what is skipped', async () => {
    await put('a/x/file', '1');
    await put('a/y/file', '1');
    await mkdir(at('b'));
    expect(await compare(['/usr/x'])).toEqual({ current: ['/usr/y/file'], target: [] });
    const { current } = await compareTrees(at('a'), at('b'), '/usr', new Set(['/usr/x']), signal);
    expect([...current.keys()]).toEqual(['/usr/y', '/usr/y/file']);
  });

  test('are not compared to the end when the signal is aborted', async () => {
    await put('a/x', '1');
    await expect(compareTrees(at('a'), at('b'), '/usr', new Set(), AbortSignal.abort())).rejects.toThrow(
      /abort/,
    );
  });
});

describe('one inode', () => {
  const stats = { ino: 1n, dev: 1n, ctimeNs: 1n, size: 1n, isFile: () => true };
  const directory = { ...stats, isFile: () => false };
  test.each<[string, typeof stats, typeof stats, boolean]>([
    ['is the same file', stats, { ...stats, ctimeNs: 2n, size: 2n }, true],
    ['or directory', directory, directory, true],
    ['is another one with another number', stats, { ...stats, ino: 2n }, false],
    ['is that of the lower file of an overlay', stats, { ...stats, dev: 2n }, true],
    ['is not where the overlay has changed it', stats, { ...stats, dev: 2n, ctimeNs: 2n }, false],
    ['is not where it is of another size', stats, { ...stats, dev: 2n, size: 2n }, false],
    ['is not that of a directory of an overlay', directory, { ...directory, dev: 2n }, false],
    ['is not where one is a directory', stats, { ...directory, dev: 2n }, false],
    ['is not where the other one is', directory, { ...stats, dev: 2n }, false],
  ])('%s', (_what, a, b, expected) => {
    expect(isSameFile(a, b)).toBe(expected);
  });
});

test('the digest of a path is that of what its parents lead to', async () => {
  await put('etc/real/file', 'text');
  await symlink('real', at('etc/alias'));
  expect(await contentDigestAt(dir, '/etc/alias/file')).toBe(await contentDigestAt(dir, '/etc/real/file'));
  expect(await contentDigestAt(dir, '/etc/real/file')).toMatch(/^file 0644 \d+:\d+ sha256:/);
  expect(await contentDigestAt(dir, '/etc/none/file')).toBe(ABSENT);
});
