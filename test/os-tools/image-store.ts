import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import type { MemoryImage } from '../../workshop/sandbox/node/memory-source.ts';

/** Images of a node's registry, in a file: the stand-ins are processes of their own. */
function fileOf(dir: string): string {
  return path.join(dir, 'registry.json');
}

/** Makes images known to a node's stand-ins. */
export async function writeImages(
  dir: string,
  images: ReadonlyMap<DigestedPullspec, MemoryImage>,
): Promise<void> {
  const plain = [...images].map(([name, { labels, layers }]) => [
    name,
    { labels, layers: layers.map((items) => items.map(withContent)) },
  ]);
  await writeFile(`${fileOf(dir)}.new`, JSON.stringify(plain));
  await rename(`${fileOf(dir)}.new`, fileOf(dir));
}

/** @returns a node's images. */
export async function readImages(dir: string): Promise<ReadonlyMap<DigestedPullspec, MemoryImage>> {
  const plain = JSON.parse(await readFile(fileOf(dir), 'utf8')) as [string, MemoryImage][];
  return new Map(
    plain.map(([name, { labels, layers }]) => [
      parseDigestedPullspec(name),
      { labels, layers: layers.map((items) => items.map(fromContent)) },
    ]),
  );
}

function withContent(item: LayerItem): unknown {
  if (item.type !== 'file') return item;
  if (!(item.content instanceof Uint8Array)) throw new TypeError(`${item.path}: content in memory expected`);
  return { ...item, content: Buffer.from(item.content).toString('base64') };
}

function fromContent(item: LayerItem): LayerItem {
  return item.type === 'file' ? { ...item, content: Buffer.from(String(item.content), 'base64') } : item;
}
