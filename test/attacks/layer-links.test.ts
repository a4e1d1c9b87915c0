import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { extractLayer, LayerRefused } from '../../daemon/os/ostree/extract-layer.ts';
import { mergeLayer } from '../../daemon/os/ostree/merge-layer.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { deadline } from '../fixtures/patience.ts';

/**
 * Who makes a base image writes the entries of its layers, and the daemon extracts them as root: a hard link through a
 * link of the same layer made a file of the host a part of the deployment, readable by its services and writable by who
 * writes there.
 */

const signal = deadline(30_000);
const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const symlink = (name: string, target: string): LayerItem => ({
  type: 'symlink',
  path: name,
  target,
  ...own,
});
const hardlink = (name: string, target: string): LayerItem => ({ type: 'hardlink', path: name, target });
const file = (name: string): LayerItem => ({
  type: 'file',
  path: name,
  mode: 0o644,
  ...own,
  content: Buffer.from(name),
});

/** @returns a directory with a file of the host, a tree of the layers below, and what merges a layer into it. */
async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), 'layer-links-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const [host, layer, tree] = ['host/etc', 'layer', 'tree/usr'].map((name) => path.join(dir, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [host, layer, tree]) await mkdir(each, { recursive: true });
  const secret = path.join(host, 'shadow');
  await writeFile(secret, 'root:hash');
  return {
    dir,
    host,
    secret,
    tree: path.dirname(tree),
    async merge(items: readonly LayerItem[]) {
      const { notes } = await extractLayer(Readable.from(items), layer, signal);
      await mergeLayer(layer, notes, path.dirname(tree), signal);
    },
  };
}

test.each([
  ['an absolute link', (host: string) => [symlink('/out', host), hardlink('/usr/stolen', '/out/shadow')]],
  [
    'a relative link',
    () => [symlink('/usr/out', '../../host/etc'), hardlink('/usr/stolen', '/usr/out/shadow')],
  ],
  [
    'a link to a link',
    (host: string) => [
      symlink('/usr/one', host),
      symlink('/two', 'usr/one'),
      hardlink('/usr/stolen', '/two/shadow'),
    ],
  ],
  [
    'a link above a directory',
    (host: string) => [symlink('/out', path.dirname(host)), hardlink('/usr/stolen', '/out/etc/shadow')],
  ],
  [
    'a link that the layer has as /etc',
    (host: string) => [symlink('/etc', host), hardlink('/usr/a', '/etc/shadow')],
  ],
])('a file of the host does not become part of a deployment through %s', async (_, items) => {
  const { host, secret, merge } = await setUp();
  await expect(merge(items(host))).rejects.toThrow(LayerRefused);
  expect((await lstat(secret)).nlink).toBe(1);
});

test('a hard link through a link of the layer is one within the tree', async () => {
  const { tree, merge } = await setUp();
  await merge([file('/usr/lib64/a'), symlink('/lib', 'usr/lib64'), hardlink('/usr/b', '/lib/a')]);
  expect(await readFile(path.join(tree, 'usr/b'), 'utf8')).toBe('/usr/lib64/a');
  expect((await lstat(path.join(tree, 'usr/b'))).nlink).toBe(2);
});
