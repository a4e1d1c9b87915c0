import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { compareTrees, contentDigestAt, readTree } from './read-tree.ts';
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

test('the digest of a path is that of what its parents lead to', async () => {
  await put('etc/real/file', 'text');
  await symlink('real', at('etc/alias'));
  expect(await contentDigestAt(dir, '/etc/alias/file')).toBe(await contentDigestAt(dir, '/etc/real/file'));
  expect(await contentDigestAt(dir, '/etc/real/file')).toMatch(/^file 0644 \d+:\d+ sha256:/);
  expect(await contentDigestAt(dir, '/etc/none/file')).toBe(ABSENT);
});
