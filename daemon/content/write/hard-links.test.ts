import { lstat, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { emptyNodeConfig, type NodeConfig, type NodeLink } from '../../../machineconfig/node-config.ts';
import { config, createTree, OWN } from '../../../test/fixtures/config-tree.ts';
import { verifyConfig } from '../../../test/fixtures/standard-content.ts';
import { PathError } from '../../files/host-file-error.ts';

/** @returns hard links by their targets, and other links by theirs. */
function links(
  hard: Readonly<Record<string, string>>,
  soft: Readonly<Record<string, string>> = {},
): Partial<NodeConfig> {
  const entries = (targets: Readonly<Record<string, string>>, isHard: boolean) =>
    Object.entries(targets).map(([path, target]): [string, NodeLink] => [
      path,
      { path, target, hard: isHard, ...OWN },
    ]);
  return { links: new Map([...entries(hard, true), ...entries(soft, false)]) };
}

async function nodeWithTree() {
  const tree = await createTree();
  const inode = async (name: string) => (await lstat(tree.at(name))).ino;
  return { ...tree, inode };
}

describe('a hard link is one file with its target', () => {
  test.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>]>([
    ['when it sorts before the file', { '/etc/z': 'text' }, { '/etc/a': '/etc/z' }],
    ['when it sorts after the file', { '/etc/a': 'text' }, { '/etc/z': '/etc/a' }],
    [
      'over other hard links',
      { '/etc/m': 'text' },
      { '/etc/a': '/etc/z', '/etc/z': '/etc/b', '/etc/b': '/etc/m' },
    ],
    [
      'in a directory that is missing',
      { '/etc/z/deep/file': 'text' },
      { '/etc/a/deep/link': '/etc/z/deep/file' },
    ],
  ])('%s', async (_when, files, hard) => {
    const { write, inode, target } = await nodeWithTree();
    const [file = ''] = Object.keys(files);
    const one = config('one', files, links(hard));
    await write(emptyNodeConfig, one);
    for (const name of Object.keys(hard)) expect(await inode(name), name).toBe(await inode(file));
    expect(await verifyConfig(target.root, one)).toEqual([]);
    expect(await write(one, one)).toEqual({ written: [], removed: [] });

    const two = config('two', { [file]: 'other' }, links(hard));
    await write(one, two);
    for (const name of Object.keys(hard)) expect(await inode(name), name).toBe(await inode(file));
    expect(await verifyConfig(target.root, two)).toEqual([]);
  });

  test("when the target is a file of the node's", async () => {
    const { write, inode, text } = await nodeWithTree();
    const to = config('to', {}, links({ '/etc/a': '/etc/admin.conf' }));
    await write(emptyNodeConfig, to);
    expect([await inode('etc/a'), await text('etc/a')]).toEqual([await inode('etc/admin.conf'), 'admin']);
  });

  test('when a file of the config replaces it in the same write, and when that gives it back', async () => {
    const { write, inode, text, snapshot } = await nodeWithTree();
    const before = await snapshot();
    const hard = links({ '/etc/a': '/etc/stock.conf' });
    const [ours, theirs] = [config('ours', { '/etc/stock.conf': 'ours' }, hard), config('theirs', {}, hard)];
    await write(emptyNodeConfig, ours);
    expect([await inode('etc/a'), await text('etc/a')]).toEqual([await inode('etc/stock.conf'), 'ours']);
    await write(ours, theirs);
    expect([await inode('etc/a'), await text('etc/a')]).toEqual([await inode('etc/stock.conf'), 'stock']);
    await write(theirs, emptyNodeConfig);
    expect(await snapshot()).toEqual(before);
  });

  test('when the config has the file by another name of its directory', async () => {
    const { write, inode, target, at } = await nodeWithTree();
    await mkdir(at('etc/real'));
    await symlink('real', at('etc/alias'));
    const to = config('to', { '/etc/real/z': 'text' }, links({ '/etc/a': '/etc/alias/z' }));
    await write(emptyNodeConfig, to);
    expect(await inode('etc/a')).toBe(await inode('etc/real/z'));
    expect(await verifyConfig(target.root, to)).toEqual([]);
  });

  test('again by the next write, when something has made it a file of its own', async () => {
    const { write, inode, target, at } = await nodeWithTree();
    const to = config('to', { '/etc/z': 'text' }, links({ '/etc/a': '/etc/z' }));
    await write(emptyNodeConfig, to);
    // Such as the merge of /etc by ostree, which copies file by file. To a reader it is the same, and no change by
    // hand.
    await rm(at('etc/a'));
    await writeFile(at('etc/a'), await readFile(at('etc/z')));
    expect(await verifyConfig(target.root, to)).toEqual([]);
    expect(await write(to, to)).toEqual({ written: ['/etc/a'], removed: [] });
    expect(await inode('etc/a')).toBe(await inode('etc/z'));
  });
});

describe('a hard link that can not be', () => {
  test.each([
    ['to nothing', links({ '/etc/stock.conf': '/etc/none' }), '/etc/none: there is no such file'],
    ['to itself', links({ '/etc/stock.conf': '/etc/stock.conf' }), '/etc/stock.conf: there is no such file'],
    [
      'to a hard link back',
      links({ '/etc/stock.conf': '/etc/b', '/etc/b': '/etc/stock.conf' }),
      'there is no such file',
    ],
    ['to a directory', links({ '/etc/stock.conf': '/etc/sub' }), '/etc/sub: that is a directory'],
  ])('%s is refused before anything is written, and what is there stays', async (_what, more, message) => {
    const { write, snapshot, at } = await nodeWithTree();
    await mkdir(at('etc/sub'));
    const before = await snapshot();
    const steps: string[] = [];
    const to = config('to', { '/etc/new': 'text' }, more);
    const refused = write(emptyNodeConfig, to, { beforeStep: (step) => void steps.push(step) });
    await expect(refused).rejects.toThrow(PathError);
    await expect(refused).rejects.toThrow(message);
    expect(steps).toEqual([]);
    expect(await snapshot()).toEqual(before);
  });

  test('because the file goes with the config before, is refused', async () => {
    const { write, text } = await nodeWithTree();
    const from = config('from', { '/etc/z': 'text' });
    await write(emptyNodeConfig, from);
    const refused = write(from, config('to', {}, links({ '/etc/a': '/etc/z' })));
    await expect(refused).rejects.toThrow(
      "/etc/a can't be a hard link to /etc/z: there is no such file. Name a file that the config or the node has",
    );
    expect(await text('etc/z')).toBe('text');
  });

  test('is drift, and no reason to have nothing there', async () => {
    const { target } = await nodeWithTree();
    const [drift] = await verifyConfig(
      target.root,
      config('to', {}, links({ '/etc/stock.conf': '/etc/none' })),
    );
    expect(drift).toEqual({
      path: '/etc/stock.conf',
      what: 'missing',
      message: expect.stringContaining("/etc/stock.conf can't be a hard link to /etc/none"),
    });
  });
});

describe('two paths of a config that are one on a node', () => {
  const twoNames = async () => {
    const tree = await createTree();
    await mkdir(tree.at('var/home/u'), { recursive: true });
    await symlink('var/home', tree.at('home'));
    return tree;
  };

  test('are refused before anything is written, where they differ', async () => {
    const { write, snapshot } = await twoNames();
    const before = await snapshot();
    const steps: string[] = [];
    const to = config('to', { '/home/u/a': 'one', '/var/home/u/a': 'other', '/etc/new': 'text' });
    const refused = write(emptyNodeConfig, to, { beforeStep: (step) => void steps.push(step) });
    await expect(refused).rejects.toThrow(
      '/home/u/a and /var/home/u/a are both /var/home/u/a on this node, and the config wants different things there; remove one of them',
    );
    expect(steps).toEqual([]);
    expect(await snapshot()).toEqual(before);
  });

  test('are one where they are the same', async () => {
    const { write, text, target } = await twoNames();
    const to = config('to', { '/home/u/a': 'one', '/var/home/u/a': 'one' });
    await write(emptyNodeConfig, to);
    expect(await text('var/home/u/a')).toBe('one');
    expect(await verifyConfig(target.root, to)).toEqual([]);
  });
});
