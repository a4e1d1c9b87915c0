import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { ignoreMissing } from '../../daemon/files/tree-entry.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import type { MemoryImage } from '../../workshop/sandbox/node/memory-source.ts';

/**
 * An image of a node's registry, in files: the stand-ins are processes of their own. Labels are read alone, and often.
 */
function filesOf(dir: string, image: DigestedPullspec): { readonly labels: string; readonly layers: string } {
  const place = path.join(dir, 'registry', pullspecDigest(image).slice('sha256:'.length));
  return { labels: `${place}.labels.json`, layers: `${place}.layers.json` };
}

/** Makes an image known to a node's stand-ins. */
export async function writeImage(
  dir: string,
  image: DigestedPullspec,
  { labels, layers }: MemoryImage,
): Promise<void> {
  const files = filesOf(dir, image);
  await mkdir(path.dirname(files.layers), { recursive: true });
  await replace(files.layers, JSON.stringify(layers.map((items) => items.map(withContent))));
  await replace(files.labels, JSON.stringify(labels));
}

/** @returns the labels of a node's image; undefined where its registry doesn't have it. */
export async function readLabels(
  dir: string,
  image: DigestedPullspec,
): Promise<MemoryImage['labels'] | undefined> {
  const text = await readFile(filesOf(dir, image).labels, 'utf8').catch(ignoreMissing);
  return text === undefined ? undefined : JSON.parse(text);
}

/** @returns those of the images that a node's registry has. */
export async function readImages(
  dir: string,
  names: readonly DigestedPullspec[],
): Promise<ReadonlyMap<DigestedPullspec, MemoryImage>> {
  const images = new Map<DigestedPullspec, MemoryImage>();
  for (const name of names) {
    const labels = await readLabels(dir, name);
    if (labels === undefined) continue;
    const layers = JSON.parse(await readFile(filesOf(dir, name).layers, 'utf8')) as MemoryImage['layers'];
    images.set(name, { labels, layers: layers.map((items) => items.map(fromContent)) });
  }
  return images;
}

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

function withContent(item: LayerItem): unknown {
  if (item.type !== 'file') return item;
  if (!(item.content instanceof Uint8Array)) throw new TypeError(`${item.path}: content in memory expected`);
  return { ...item, content: Buffer.from(item.content).toString('base64') };
}

function fromContent(item: LayerItem): LayerItem {
  return item.type === 'file' ? { ...item, content: Buffer.from(String(item.content), 'base64') } : item;
}
