import { expect, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { baseFile, linkedBase, pushLayers } from '../../test/fixtures/registry/linked-base.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { describeImage } from '../append.ts';
import { digestOf } from '../digest.ts';
import { writeLayer } from '../layer/write-layer.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from '../registry/registry-client.ts';
import { pushBaseRecord, readBaseRecord } from './base-record.ts';
import { formatBaseTree } from './base-tree.ts';
import { BaseTrees } from './base-trees.ts';
import { type BaseImage, chainIds, readBaseTree } from './read-base.ts';

const signal = deadline(60_000);
const more = [baseFile('/usr/lib/extension', 'more')];

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const push = async (tag: string, layers = linkedBase) => {
    await pushLayers(client, `${registry.host}/os/base:${tag}`, layers, signal);
    const reference = parseReference(`${registry.host}/os/base:${tag}`);
    return { reference, description: await describeImage(client, reference, 'amd64', signal) };
  };
  const read: number[] = [];
  const trees = (most?: number) =>
    new BaseTrees({ onReading: (_, layers) => read.push(layers), ...(most === undefined ? {} : { most }) });
  return { registry, client, push, read, trees };
}

const chainIdOf = ({ description }: BaseImage) =>
  chainIds(description.config.rootfs.diff_ids).at(-1) as Digest;

test('ChainIDs are those of the image specification', async () => {
  const ids = (await Promise.all([writeLayer([]), writeLayer(more)])).map(({ diffId }) => diffId);
  const [first, second] = chainIds(ids);
  expect(first).toBe(ids[0]);
  expect(second).toBe(digestOf(`${ids[0] ?? ''} ${ids[1] ?? ''}`));
  expect(chainIds([])).toEqual([]);
});

test('a base is read once, and an image that is made of it from there on', async () => {
  const { client, push, read, trees } = await setUp();
  const [stock, engine] = [await push('1'), await push('2', [...linkedBase, more])];
  const known = trees();
  const tree = await known.treeOf(client, stock, [], signal);
  expect(tree.at('/etc/NetworkManager/system-connections')).toMatchObject({ mode: 0o700 });
  expect(await known.treeOf(client, stock, [], signal)).toBe(tree);
  const upon = await known.treeOf(client, engine, [], signal);
  expect(upon.at('/usr/lib/extension')?.kind).toBe('file');
  expect(tree.at('/usr/lib/extension')).toBeUndefined();
  expect(read).toEqual([2, 1]);
});

test('of an image that is made of another, both are kept', async () => {
  const { client, push, read, trees } = await setUp();
  const [stock, engine] = [await push('1'), await push('2', [...linkedBase, more])];
  const known = trees();
  await known.treeOf(client, { ...engine, stock: async () => stock }, [], signal);
  await known.treeOf(client, stock, [], signal);
  // Commands that add nothing leave the same layers.
  await trees().treeOf(client, { ...stock, stock: async () => stock }, [], signal);
  expect(read).toEqual([2, 1, 2]);
});

test('builds that need one base at the same time read it once; if that fails, the next one tries', async () => {
  const { registry, client, push, read, trees } = await setUp();
  const stock = await push('1');
  const known = trees();
  const both = await Promise.all([1, 2].map(() => known.treeOf(client, stock, [], signal)));
  expect([both[0] === both[1], read]).toEqual([true, [2]]);
  let blobs = 0;
  registry.refuse = (line) => {
    blobs += line.startsWith('GET') && line.includes('/blobs/') ? 1 : 0;
    return blobs === 1 ? { status: 403 } : undefined;
  };
  const again = trees();
  const results = await Promise.allSettled([1, 2].map(() => again.treeOf(client, stock, [], signal)));
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
});

test('the trees that were not used for longest are forgotten', async () => {
  const { client, push, read, trees } = await setUp();
  const images = [await push('1'), await push('2', [more]), await push('3', [[]])];
  const known = trees(2);
  for (const index of [0, 1, 0, 2, 0, 1]) {
    const image = images[index];
    if (image !== undefined) await known.treeOf(client, image, [], signal);
  }
  expect(read).toEqual([2, 1, 1, 1]);
});

test('a record is read in place of the layers; one that is gone, or of something else, is none', async () => {
  const { registry, client, push, read, trees } = await setUp();
  const stock = await push('1');
  const tree = await readBaseTree(client, stock, undefined, signal);
  const chainId = chainIdOf(stock);
  const at = parseReference(`${registry.host}/os/worker`);
  const digest = await pushBaseRecord(client, at, { chainId, tree }, signal);
  const recordAt = (of: Digest, repository = at.repository) =>
    readBaseRecord(client, { ...at, repository, digest: of }, signal);
  const kept = [{ chainId, read: () => recordAt(digest) }];
  const found = await trees().treeOf(client, stock, kept, signal);
  expect(Buffer.from(formatBaseTree(found)).equals(formatBaseTree(tree))).toBe(true);
  await trees().treeOf(client, await push('2', [...linkedBase, more]), kept, signal);
  expect(read).toEqual([1]);
  expect(await pushBaseRecord(client, at, { chainId, tree }, signal)).toBe(digest);
  expect(await recordAt(digestOf('none'))).toBeUndefined();
  expect(await recordAt(stock.description.digest, 'os/base')).toBeUndefined();
  await trees().treeOf(client, stock, [{ chainId, read: () => recordAt(digestOf('none')) }], signal);
  expect(read).toEqual([1, 2]);
});

test('a layer that is not what the image says is refused', async () => {
  const { client, push, trees } = await setUp();
  const [stock, other] = [await push('1'), await push('2', [more, []])];
  const { config } = other.description;
  const wrong = { ...stock, description: { ...stock.description, config } };
  await expect(trees().treeOf(client, wrong, [], signal)).rejects.toThrow('has the diffID');
  const short = { ...config, rootfs: { ...config.rootfs, diff_ids: config.rootfs.diff_ids.slice(1) } };
  await expect(
    trees().treeOf(client, { ...stock, description: { ...stock.description, config: short } }, [], signal),
  ).rejects.toThrow('has 2 layers and 1 diff_ids');
});
