/** umoci is the independent reader: the folded tree of a base is the tree that it unpacks. */
import { lstat, mkdir, mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { execa } from 'execa';
import fc from 'fast-check';
import { type Header, pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { patience } from '../../test/fixtures/patience.ts';
import { seed } from '../../test/fixtures/sample.ts';
import { digestOf } from '../digest.ts';
import { readLayer } from '../layer/read-layer.ts';
import { tarMode } from '../layer/write-layer.ts';
import { type BaseDirectory, formatBaseTree, parseBaseTree } from './base-tree.ts';
import { LayerFold } from './fold-layers.ts';

const CASES = 20;
const LAYER = 'application/vnd.oci.image.layer.v1.tar';

type Headers = Partial<Header> & Pick<Header, 'name'>;

const name = fc.constantFrom('a', 'b', 'c');
const at = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const owner = fc.constantFrom(0, 7, 998);
const entry: fc.Arbitrary<Headers> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      name: at.map((each) => `${each}/`),
      type: fc.constant('directory' as const),
      mode: fc.constantFrom(0o700, 0o750, 0o755).map(tarMode),
      uid: owner,
      gid: owner,
    }),
  },
  { weight: 3, arbitrary: at.map((each): Headers => ({ name: each, type: 'file', mode: 0o644 })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(at, fc.constantFrom('', '../', '/'), at)
      .map(([each, start, to]): Headers => ({ name: each, type: 'symlink', linkname: `${start}${to}` })),
  },
  { weight: 2, arbitrary: at.map((each): Headers => whiteout(each, `.wh.${path.posix.basename(each)}`)) },
  { weight: 1, arbitrary: at.map((each): Headers => whiteout(`${each}/x`, '.wh..wh..opq')) },
);

function whiteout(of: string, as: string): Headers {
  return { name: path.posix.join(path.posix.dirname(of), as), type: 'file', mode: 0o644 };
}

/**
 * Each path once, in order, whiteouts first, and nothing below what is no directory of the layer: what tools write (OCI
 * image-spec, layer.md "Whiteouts"). Of a whiteout behind an entry below it, which a path by a link can make, unpackers
 * make different trees.
 */
function layerOf(entries: readonly Headers[]): readonly Headers[] {
  const bare = (each: Headers) => each.name.replace(/\/$/, '');
  const byName = new Map(entries.map((each) => [bare(each), each]));
  const isWhiteout = (each: Headers) => path.posix.basename(each.name).startsWith('.wh.');
  const all = [...byName.values()].sort(
    (a, b) => Number(isWhiteout(b)) - Number(isWhiteout(a)) || (bare(a) < bare(b) ? -1 : 1),
  );
  const solid = new Set(all.filter(({ type }) => type !== 'directory').map(bare));
  const isBelow = (each: string): boolean => {
    const parent = path.posix.dirname(each);
    return parent !== '.' && (solid.has(parent) || isBelow(parent));
  };
  return all.filter((each) => !isBelow(bare(each)));
}

async function tar(entries: readonly Headers[]): Promise<Buffer> {
  const archive = pack();
  for (const header of entries) archive.entry(header, '');
  archive.finalize();
  return buffer(archive);
}

/** Unpacks layers by umoci. @returns what is where; undefined for layers that nothing can unpack. */
async function unpacked(
  dir: string,
  layers: readonly Buffer[],
): Promise<ReadonlyMap<string, string> | undefined> {
  const layout = path.join(dir, 'oci');
  await mkdir(path.join(layout, 'blobs/sha256'), { recursive: true });
  const put = async (bytes: Buffer, mediaType: string) => {
    const digest = digestOf(bytes);
    await writeFile(path.join(layout, 'blobs', digest.replace(':', '/')), bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const descriptors = [];
  for (const layer of layers) descriptors.push(await put(layer, LAYER));
  const rootfs = { type: 'layers', diff_ids: descriptors.map(({ digest }) => digest) };
  const config = await put(
    json({ architecture: 'amd64', os: 'linux', config: {}, rootfs }),
    'application/vnd.oci.image.config.v1+json',
  );
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await put(json({ schemaVersion: 2, mediaType, config, layers: descriptors }), mediaType);
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'x' } };
  await writeFile(path.join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  await writeFile(path.join(layout, 'index.json'), json({ schemaVersion: 2, manifests: [named] }));
  const bundle = path.join(dir, 'bundle');
  const { failed } = await execa('umoci', ['unpack', '--image', `${layout}:x`, bundle], { reject: false });
  return failed ? undefined : diskListing(path.join(bundle, 'rootfs'));
}

async function diskListing(root: string, below = ''): Promise<ReadonlyMap<string, string>> {
  const lines = new Map<string, string>();
  for (const each of await readdir(path.join(root, below))) {
    const where = path.posix.join(below, each);
    const stats = await lstat(path.join(root, where));
    if (stats.isSymbolicLink()) lines.set(where, `link ${await readlink(path.join(root, where))}`);
    else if (!stats.isDirectory()) lines.set(where, 'file');
    else {
      lines.set(where, `directory ${(stats.mode & 0o7777).toString(8)} ${stats.uid}:${stats.gid}`);
      for (const [more, line] of await diskListing(root, where)) lines.set(more, line);
    }
  }
  return lines;
}

function treeListing(directory: BaseDirectory, below = ''): ReadonlyMap<string, string> {
  const lines = new Map<string, string>();
  for (const [each, node] of directory.children) {
    const where = path.posix.join(below, each);
    if (node.kind === 'link') lines.set(where, `link ${node.target}`);
    else if (node.kind === 'file') lines.set(where, 'file');
    else {
      lines.set(where, `directory ${node.mode.toString(8)} ${node.uid}:${node.gid}`);
      for (const [more, line] of treeListing(node, where)) lines.set(more, line);
    }
  }
  return lines;
}

const sorted = (lines: ReadonlyMap<string, string>) =>
  Object.fromEntries([...lines].sort(([a], [b]) => (a < b ? -1 : 1)));

test('layers are folded into the tree that umoci makes of them', { timeout: patience(120_000) }, async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'folded-'));
  const live = new AbortController().signal;
  const layers = fc.array(fc.array(entry, { maxLength: 12 }).map(layerOf), { minLength: 2, maxLength: 4 });
  try {
    await fc.assert(
      fc.asyncProperty(layers, async (each) => {
        const archives = await Promise.all(each.map(tar));
        const fold = new LayerFold();
        for (const bytes of archives) {
          const layer = { mediaType: LAYER, diffId: digestOf(bytes) };
          await fold.add(
            readLayer(
              (async function* () {
                yield bytes;
              })(),
              layer,
              live,
            ),
          );
        }
        const tree = fold.finish();
        const own = await mkdtemp(path.join(dir, 'case-'));
        const there = await unpacked(own, archives);
        // Such as an entry below a file of a lower layer.
        fc.pre(there !== undefined);
        const expected = sorted(there);
        expect(sorted(treeListing(tree.root))).toEqual(expected);
        expect(sorted(treeListing(parseBaseTree(formatBaseTree(tree), 'here').root))).toEqual(expected);
        await rm(own, { recursive: true });
      }),
      { seed, numRuns: CASES },
    );
  } finally {
    await rm(dir, { recursive: true });
  }
});
