import { createHash } from 'node:crypto';
import type { LayerItem } from '../../image/layer/entry.ts';
import { LayerError, readLayer } from '../../image/layer/read-layer.ts';

/** A layer that can be read. */
export interface ReadableLayer {
  readonly blob: AsyncIterable<Uint8Array>;
  readonly mediaType: string;
  readonly diffId: Parameters<typeof readLayer>[1]['diffId'];
}

/** Bytes of a layer that is not the expected one, uncompressed, up to which it is read to say what differs. */
const MOST = 64 * 1024 * 1024;

/**
 * Finds what makes two layers differ, for the message to an admin.
 *
 * @param config name of the rendered config that the expected layer is of.
 * @returns a path that differs, of a file where there is one.
 * @throws what reading the blobs throws.
 */
export async function layerDifference(
  found: ReadableLayer,
  expected: ReadableLayer,
  config: string,
  signal: AbortSignal,
): Promise<string> {
  try {
    const [own, theirs] = [await itemsOf(expected, signal), await itemsOf(found, signal)];
    const differing = [...new Set([...own.keys(), ...theirs.keys()])]
      .sort()
      .map((path) => ({ path, is: theirs.get(path), should: own.get(path) }))
      .filter(({ is, should }) => is?.words !== should?.words);
    // The parents of a file say less than the file.
    const [first] = [
      ...differing.filter(({ is, should }) => (is ?? should)?.type !== 'directory'),
      ...differing,
    ];
    if (first === undefined) return `its layer has the diffID ${found.diffId}; expected ${expected.diffId}`;
    const { path, is, should } = first;
    if (should === undefined) return `it has /${path}, which ${config} does not bring there`;
    return is === undefined
      ? `it lacks /${path} of ${config}`
      : `/${path} is ${is.words}; expected ${should.words}`;
  } catch (error) {
    if (!(error instanceof LayerError)) throw error;
    return `its layer can't be compared with that of ${config}: ${error.message}`;
  }
}

interface FoundItem {
  readonly type: LayerItem['type'];
  readonly words: string;
}

async function itemsOf(
  { blob, ...layer }: ReadableLayer,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, FoundItem>> {
  const items = new Map<string, FoundItem>();
  for await (const item of readLayer(blob, layer, signal, { most: MOST })) {
    const key = item.type === 'whiteout' ? `${item.path} (whiteout)` : item.path;
    items.set(key, { type: item.type, words: await describe(item) });
  }
  return items;
}

async function describe(item: LayerItem): Promise<string> {
  switch (item.type) {
    case 'file':
      return `a file ${attributes(item)}, ${await contentOf(item.content)}`;
    case 'directory':
      return `a directory ${attributes(item)}`;
    case 'symlink':
      return `a link to ${item.target}, owner ${item.uid}:${item.gid}`;
    case 'hardlink':
      return `a hard link to /${item.target}`;
    case 'whiteout':
      return 'hidden';
    case 'opaque':
      return 'emptied';
  }
}

function attributes({ mode, uid, gid, xattrs = {} }: Extract<LayerItem, { type: 'file' | 'directory' }>) {
  const more = Object.entries(xattrs).map(
    ([name, value]) => `, ${name}=${Buffer.from(value).toString('base64')}`,
  );
  return `of mode ${mode.toString(8).padStart(4, '0')}, owner ${uid}:${gid}${more.sort().join('')}`;
}

async function contentOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  if (content instanceof Uint8Array) hash.update(content);
  else for await (const chunk of content) hash.update(chunk);
  return `content sha256:${hash.digest('hex').slice(0, 12)}`;
}
