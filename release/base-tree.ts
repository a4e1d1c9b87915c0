import { posix } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describeImage, type ImageDescription } from '../image/append.ts';
import { readLayer } from '../image/layer/read-layer.ts';
import type { Reference } from '../image/reference.ts';
import type { RegistryClient } from '../image/registry/registry-client.ts';

type Node =
  | { readonly type: 'file'; readonly mode: number; readonly content: Buffer | undefined }
  | { readonly type: 'symlink'; readonly target: string }
  | { readonly type: 'directory' };

/** A file of a base image, by the path that it really has. */
export interface ImageFile {
  readonly path: string;
  readonly mode: number;
  readonly content: Buffer;
}

/** More links on one way than this go in a circle (Linux: MAXSYMLINKS). */
const MAX_LINKS = 40;

/** The files of an image's layers on top of each other, of which only some have their content. */
export class ImageFiles {
  readonly #nodes = new Map<string, Node>();

  /** What lies at and below the path goes. */
  remove(path: string): void {
    this.#nodes.delete(path);
    this.removeBelow(path);
  }

  removeBelow(path: string): void {
    const below = path === '/' ? '/' : `${path}/`;
    for (const known of this.#nodes.keys()) if (known.startsWith(below)) this.#nodes.delete(known);
  }

  set(path: string, node: Node): void {
    const before = this.#nodes.get(path);
    if (before?.type === 'directory' && node.type !== 'directory') this.remove(path);
    this.#nodes.set(path, node);
  }

  /** @returns the file that a path leads to, over links. */
  file(path: string): ImageFile | undefined {
    const found = this.#resolve(path, 0);
    const node = found === undefined ? undefined : this.#nodes.get(found);
    if (found === undefined || node?.type !== 'file' || node.content === undefined) return undefined;
    return { path: found, mode: node.mode, content: node.content };
  }

  /** @returns the paths of the files whose content is kept, as the layers name them. */
  *kept(): Generator<string> {
    for (const [path, node] of this.#nodes)
      if (node.type === 'file' && node.content !== undefined) yield path;
  }

  /** @returns a path without links; undefined where it leads nowhere. */
  #resolve(path: string, links: number): string | undefined {
    if (links > MAX_LINKS) return undefined;
    let at = '';
    const parts = posix
      .normalize(path)
      .split('/')
      .filter((part) => part !== '');
    for (const [index, part] of parts.entries()) {
      at = `${at}/${part}`;
      const node = this.#nodes.get(at);
      if (node?.type !== 'symlink') continue;
      const target = posix.resolve(posix.dirname(at), node.target);
      return this.#resolve(posix.join(target, ...parts.slice(index + 1)), links + 1);
    }
    return this.#nodes.has(at) ? at : undefined;
  }
}

/**
 * Reads an image of one architecture, layer by layer.
 *
 * @param keep of which files the content is kept.
 * @throws RegistryError; ContentError; LayerError
 */
export async function readBase(
  client: RegistryClient,
  base: Reference,
  given: { readonly architecture: string; readonly keep: (path: string) => boolean },
  signal: AbortSignal,
): Promise<{ readonly tree: ImageFiles; readonly image: ImageDescription }> {
  const image = await describeImage(client, base, given.architecture, signal);
  if (image.config.architecture !== given.architecture) {
    throw new TypeError(
      `the base image ${base.registry}/${base.repository} is for ${image.config.architecture} only; expected an index with ${given.architecture}`,
    );
  }
  const tree = new ImageFiles();
  for (const [index, blob] of image.manifest.layers.entries()) {
    const diffId = image.config.rootfs.diff_ids[index];
    if (diffId === undefined) throw new TypeError(`the base image has no diffID of its layer ${index + 1}`);
    const layer = { mediaType: blob.mediaType, diffId };
    await addLayer(tree, readLayer(client.readBlob(base, blob, signal), layer, signal), given.keep);
  }
  return { tree, image };
}

async function addLayer(
  tree: ImageFiles,
  items: ReturnType<typeof readLayer>,
  keep: (path: string) => boolean,
): Promise<void> {
  for await (const item of items) {
    const path = posix.join('/', item.path);
    switch (item.type) {
      case 'whiteout':
        tree.remove(path);
        break;
      case 'opaque':
        tree.removeBelow(path);
        break;
      case 'file': {
        const content = keep(path) ? await contentOf(item.content) : undefined;
        tree.set(path, { type: 'file', mode: item.mode & 0o777, content });
        break;
      }
      case 'symlink':
        tree.set(path, { type: 'symlink', target: item.target });
        break;
      case 'hardlink':
        // Another name of the same file; a link to it is equivalent.
        tree.set(path, { type: 'symlink', target: posix.join('/', item.target) });
        break;
      case 'directory':
        tree.set(path, { type: 'directory' });
        break;
    }
  }
}

async function contentOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<Buffer> {
  return content instanceof Uint8Array ? Buffer.from(content) : await buffer(content);
}
