import { createHash } from 'node:crypto';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import type { LayerItem } from '../../../image/layer/entry.ts';

export interface MemoryImage {
  readonly labels: Readonly<Record<string, string>>;
  /** Entries with their content in memory, lowest layer first. */
  readonly layers: readonly (readonly LayerItem[])[];
  /** Public keys in PEM of those that signed it; none unless given. */
  readonly signedBy?: readonly string[];
}

/** No registry has the image. */
class UnknownImageError extends Error {
  override readonly name = 'UnknownImageError';
}

/**
 * Images held in memory: a directory node's first image, and those of tests. A layer's diffID is computed from its
 * entries, so that equal layers are one, as in a registry.
 */
export function memorySource(images: ReadonlyMap<DigestedPullspec, MemoryImage>): ImageSource {
  return {
    isSignedBy: async (name, publicKey) => images.get(name)?.signedBy?.includes(publicKey) === true,
    open: async (name, signal) => {
      signal.throwIfAborted();
      const image = images.get(name);
      if (image === undefined) throw new UnknownImageError(`${name}: not found`);
      return {
        labels: image.labels,
        layers: image.layers.map((items) => ({
          diffId: layerDigest(items),
          digest: layerDigest(items),
          size: items.reduce((sum, item) => sum + sizeOf(item), 0),
          async *read(onBytes) {
            for (const item of items) {
              yield item;
              onBytes(sizeOf(item));
            }
          },
        })),
      };
    },
  };
}

function sizeOf(item: LayerItem): number {
  return item.type === 'file' && item.content instanceof Uint8Array ? item.content.byteLength : 0;
}

const DIGESTS = new WeakMap<readonly LayerItem[], string>();

/** @returns the digest of a layer, which nobody changes once it is in an image. */
export function layerDigest(items: readonly LayerItem[]): string {
  const digest = DIGESTS.get(items) ?? digestOfItems(items);
  DIGESTS.set(items, digest);
  return digest;
}

function digestOfItems(items: readonly LayerItem[]): string {
  const hash = createHash('sha256');
  for (const item of items) {
    const content =
      item.type === 'file' && item.content instanceof Uint8Array ? item.content : new Uint8Array();
    hash.update(JSON.stringify({ ...item, content: createHash('sha256').update(content).digest('hex') }));
  }
  return `sha256:${hash.digest('hex')}`;
}
