import { lstat, mkdir, mkdtemp, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { emptyNodeConfig, type NodeConfig } from '../../../machineconfig/node-config.ts';
import { config, link, OWN } from '../../../test/fixtures/config-tree.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { sample } from '../../../test/fixtures/sample.ts';
import { verifyConfig, writeConfig } from '../../../test/fixtures/standard-content.ts';
import { readTree } from '../../files/read-tree.ts';
import { contentDigest } from '../../files/tree-entry.ts';
import type { WriteTarget } from './write-log.ts';

/**
 * Whatever a node had before, and whichever config it comes from, a config makes the same tree; and without a config
 * the tree is what it was at first.
 */
const signal = deadline(120_000);

/** What a base has at /etc/p, below the directory that is given. Beside it is a directory that links lead to. */
const bases: Readonly<Record<string, (etc: string) => Promise<unknown>>> = {
  nothing: async () => undefined,
  'a file': (etc) => writeFile(path.join(etc, 'p'), 'of the base'),
  'a link to a directory': (etc) => symlink('../etc/real', path.join(etc, 'p')),
  'a link to a file': (etc) => symlink('real/below', path.join(etc, 'p')),
  'a link to nothing': (etc) => symlink('none', path.join(etc, 'p')),
  'an empty directory': (etc) => mkdir(path.join(etc, 'p'), { mode: 0o711 }),
  'a directory with a file': async (etc) => {
    await mkdir(path.join(etc, 'p'), { mode: 0o711 });
    await writeFile(path.join(etc, 'p/below'), 'of the base');
  },
};

const directory = (at: string) => new Map([[at, { path: at, mode: 0o750, ...OWN }]]);
const configs: Readonly<Record<string, NodeConfig>> = {
  nothing: emptyNodeConfig,
  'a file': config('file', { '/etc/p': 'of the config' }),
  'a link to a directory': config('link', {}, { links: link('/etc/p', 'real') }),
  'a link to nothing': config('dangling', {}, { links: link('/etc/p', 'gone') }),
  'a directory': config('directory', {}, { directories: directory('/etc/p') }),
  'a directory with files': config(
    'full',
    { '/etc/p/below': 'of the config', '/etc/p/more': 'of the config' },
    { directories: directory('/etc/p') },
  ),
  'files below': config('below', { '/etc/p/below': 'of the config', '/etc/p/deep/file': 'deep' }),
};

interface Node extends WriteTarget {
  readonly write: (from: NodeConfig, to: NodeConfig) => Promise<'written' | 'refused'>;
  readonly snapshot: () => Promise<readonly string[]>;
}

async function createNode(base: string, isOfImage: boolean): Promise<Node> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-transitions-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const name of ['etc/real', 'usr/etc/real', 'var/lib/shale']) {
    await mkdir(path.join(root, name), { recursive: true });
  }
  for (const etc of ['etc', 'usr/etc']) {
    await writeFile(path.join(root, etc, 'real/below'), 'beside');
    if (isOfImage || etc === 'etc') await bases[base]?.(path.join(root, etc));
  }
  const target: WriteTarget = {
    root,
    stateDir: path.join(root, 'var/lib/shale'),
    relabel: async () => undefined,
    setPasswords: async () => undefined,
  };
  return {
    ...target,
    write: (from, to) =>
      writeConfig(target, { from, to }, { signal }).then(
        () => 'written',
        () => 'refused',
      ),
    snapshot: async () => {
      const tree = await readTree(path.join(root, 'etc'), '/etc', signal);
      return [...tree]
        .filter(([name]) => !name.startsWith('/etc/shale'))
        .map(([name, entry]) => `${name} ${contentDigest(entry)}`)
        .toSorted();
    },
  };
}

function configNamed(name: string): NodeConfig {
  const found = configs[name];
  if (found === undefined) throw new TypeError(`there is no config ${name}`);
  return found;
}

/** Ways of a sample, of the 49 that each base has. */
const WAYS = 6;

describe.each(Object.keys(bases))('on a base with %s', (base) => {
  describe.each([
    ['of the image', true],
    ["of the node's own", false],
  ])('%s', (whose, isOfImage) => {
    const ways = Object.keys(configs).flatMap((from) => Object.keys(configs).map((to) => ({ from, to })));
    test.each(sample(`ways of configs, ${base} ${whose}`, ways, WAYS))(
      'the way from $from to $to ends as if there were no other, and so does the way back',
      async ({ from: former, to: next }) => {
        const [from, to] = [configNamed(former), configNamed(next)];
        const direct = await createNode(base, isOfImage);
        const before = await direct.snapshot();
        const outcome = await direct.write(emptyNodeConfig, to);
        const expected = await direct.snapshot();
        if (outcome === 'refused') expect(expected).toEqual(before);
        else expect(await verifyConfig(direct.root, to, { signal })).toEqual([]);

        const node = await createNode(base, isOfImage);
        if ((await node.write(emptyNodeConfig, from)) === 'refused') return;
        const between = await node.snapshot();
        expect(await node.write(from, to)).toBe(outcome);
        expect(await node.snapshot()).toEqual(outcome === 'refused' ? between : expected);
        const last = outcome === 'refused' ? from : to;
        expect(await verifyConfig(node.root, last, { signal })).toEqual([]);
        expect(await node.write(last, emptyNodeConfig)).toBe('written');
        expect(await node.snapshot()).toEqual(before);
      },
    );
  });
});

test('a directory over a link of the base has its own files, and the files that the link led to stay', async () => {
  const node = await createNode('a link to a directory', true);
  const before = await node.snapshot();
  const to = configNamed('a directory with files');
  expect(await node.write(emptyNodeConfig, to)).toBe('written');
  const stats = await lstat(path.join(node.root, 'etc/p'));
  expect([stats.isDirectory(), stats.mode & 0o7777]).toEqual([true, 0o750]);
  const own = before.filter((line) => !line.startsWith('/etc/p '));
  expect(await node.snapshot()).toEqual(expect.arrayContaining(own));
  expect((await lstat(path.join(node.root, 'etc/p/below'))).size).toBe('of the config'.length);
  expect(await node.write(to, emptyNodeConfig)).toBe('written');
  expect(await readlink(path.join(node.root, 'etc/p'))).toBe('../etc/real');
  expect(await node.snapshot()).toEqual(before);
});
