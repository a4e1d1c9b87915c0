import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { readTree } from '../../files/read-tree.ts';
import { extractLayer } from './extract-layer.ts';
import { mergeLayer } from './merge-layer.ts';

const signal = new AbortController().signal;
const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

/** Unpacks layers as the backend does, without the repository between. */
async function unpack(layers: readonly (readonly LayerItem[])[]): Promise<Readonly<Record<string, string>>> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-merge-'));
  try {
    const tree = path.join(dir, 'tree');
    await mkdir(tree);
    for (const [index, items] of layers.entries()) {
      const layer = path.join(dir, String(index));
      await mkdir(layer);
      const { notes } = await extractLayer(stream(items), layer, signal);
      await mergeLayer(layer, notes, tree, signal);
    }
    const entries = [...(await readTree(tree, '/', signal))].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([name, entry]) => [name, summary(entry)]));
  } finally {
    await rm(dir, { recursive: true });
  }
}

function summary(entry: { readonly kind: string; readonly mode?: number }): string {
  return `${entry.kind} ${entry.mode?.toString(8) ?? ''}`;
}

async function* stream(items: readonly LayerItem[]): AsyncIterable<LayerItem> {
  yield* items;
}

const file = (name: string, mode: number): LayerItem => ({
  type: 'file',
  path: name,
  mode,
  ...owner,
  content: Buffer.from(name),
});
const directory = (name: string, mode: number): LayerItem => ({
  type: 'directory',
  path: name,
  mode,
  ...owner,
});

type Model = ReadonlyMap<string, string>;

/** OCI image-spec, layer.md "Applying Changesets", on a map. */
function model(layers: readonly (readonly LayerItem[])[]): Readonly<Record<string, string>> {
  let tree: Model = new Map();
  for (const items of layers) {
    tree = items.reduce(withoutLower, tree);
    tree = items.reduce(withEntry, tree);
  }
  return Object.fromEntries([...tree].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function withoutLower(tree: Model, { path: name, type }: LayerItem): Model {
  if (type === 'opaque') return withoutBelow(tree, name);
  if (type === 'whiteout') return new Map([...withoutBelow(tree, name)].filter(([other]) => other !== name));
  return tree;
}

function withEntry(tree: Model, item: LayerItem): Model {
  if (item.type !== 'file' && item.type !== 'directory') return tree;
  const next = new Map(item.type === 'file' ? withoutBelow(tree, item.path) : tree);
  for (let end = item.path.indexOf('/', 1); end > 0; end = item.path.indexOf('/', end + 1)) {
    const parent = item.path.slice(0, end);
    if (next.get(parent)?.startsWith('directory') !== true) next.set(parent, 'directory 755');
  }
  return next.set(item.path, summary({ kind: item.type, mode: item.mode }));
}

function withoutBelow(tree: Model, name: string): Model {
  return new Map([...tree].filter(([other]) => !other.startsWith(`${name}/`)));
}

const paths = ['/a', '/a/b', '/a/b/c', '/a/d', '/e', '/e/f'];

/** A layer that a builder could make: no path twice, nothing below a file of its own. */
const layer = fc
  .array(
    fc.tuple(
      fc.constantFrom(...paths),
      fc.constantFrom('file', 'directory', 'whiteout', 'opaque'),
      fc.constantFrom(0o700, 0o755),
    ),
    { maxLength: 5 },
  )
  .map((choices) => {
    const items = new Map<string, LayerItem>();
    const opaque: LayerItem[] = [];
    for (const [name, type, mode] of choices.sort(([a], [b]) => (a < b ? -1 : 1))) {
      if ([...items.values()].some((item) => item.type !== 'directory' && name.startsWith(`${item.path}/`)))
        continue;
      if (items.has(name)) continue;
      if (type === 'file') items.set(name, file(name, mode));
      else if (type === 'directory') items.set(name, directory(name, mode));
      else if (type === 'whiteout') items.set(name, { type, path: name });
      else opaque.push({ type: 'opaque', path: name });
    }
    return [...opaque.filter(({ path: name }) => !items.has(name)), ...items.values()];
  });

describe('layers', () => {
  it('merge as OCI’s changesets do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(layer, { minLength: 1, maxLength: 4 }), async (layers) => {
        expect(await unpack(layers)).toEqual(model(layers));
      }),
      { numRuns: 150 },
    );
  });

  it('bring /etc as /usr/etc, and nothing below mount points', async () => {
    const items = [file('/etc/x', 0o644), file('run/x', 0o644), directory('run', 0o755)];
    expect(Object.keys(await unpack([items]))).toEqual(['/run', '/usr', '/usr/etc', '/usr/etc/x']);
  });

  it('give a file of a layer below one more name, in place of what is there', async () => {
    const lower = [file('/a', 0o600), file('/b', 0o644), directory('/c', 0o755), file('/c/x', 0o644)];
    const links: LayerItem[] = [
      { type: 'hardlink', path: '/b', target: '/a' },
      { type: 'hardlink', path: '/c', target: '/a' },
      { type: 'hardlink', path: '/new', target: '/a' },
    ];
    expect(await unpack([lower, links])).toEqual({
      '/a': 'file 600',
      '/b': 'file 600',
      '/c': 'file 600',
      '/new': 'file 600',
    });
    const toDirectory: LayerItem = { type: 'hardlink', path: '/b', target: '/c' };
    await expect(unpack([lower, [toDirectory]])).rejects.toThrow('/b: hard link to /c, which is in no layer');
  });

  it('follow a link of a layer below where they only pass through it, and replace it where they do not', async () => {
    const link = (name: string, target: string): LayerItem => ({
      type: 'symlink',
      path: name,
      target,
      ...owner,
    });
    const lower = [directory('/usr', 0o755), directory('/usr/bin', 0o700), link('/bin', 'usr/bin')];
    expect(await unpack([lower, [file('/bin/x', 0o644)]])).toEqual({
      '/bin': 'symlink ',
      '/usr': 'directory 755',
      '/usr/bin': 'directory 700',
      '/usr/bin/x': 'file 644',
    });
    expect(await unpack([lower, [directory('/bin', 0o711), file('/bin/x', 0o644)]])).toEqual({
      '/bin': 'directory 711',
      '/bin/x': 'file 644',
      '/usr': 'directory 755',
      '/usr/bin': 'directory 700',
    });
    await expect(unpack([[link('/bin', 'nowhere')], [file('/bin/x', 0o644)]])).rejects.toThrow(
      '/bin/x: leads through something that is not a directory',
    );
  });

  it('are refused when they name a path twice or a hard link that leads nowhere', async () => {
    await expect(unpack([[file('/a', 0o644), file('/a', 0o644)]])).rejects.toThrow('appears twice');
    await expect(unpack([[{ type: 'hardlink', path: '/a', target: '/b' }]])).rejects.toThrow(
      'which is in no layer',
    );
    const throughFile: LayerItem = { type: 'hardlink', path: '/a', target: '/f/b' };
    await expect(unpack([[file('/f', 0o644)], [throughFile]])).rejects.toThrow(
      '/a: hard link to /f/b, which is in no layer',
    );
  });
});
