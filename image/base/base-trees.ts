import type { Digest } from '../../api/references.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import type { BaseTree } from './base-tree.ts';
import { type BaseImage, chainIds, readBaseTree, type TreeBelow } from './read-base.ts';

/** A tree that was read before, perhaps by another process. */
export interface KeptTree {
  /** Of the layers that it is of. */
  readonly chainId: Digest;
  /** @returns undefined where it is gone. */
  readonly read: (signal: AbortSignal) => Promise<BaseTree | undefined>;
}

export interface BaseTreesOptions {
  /** How many trees stay in memory; one of a large base has some ten megabytes. */
  readonly most?: number;
  /** Called before layers are read, which takes as long as to pull them. */
  readonly onReading?: (image: BaseImage, layers: number, bytes: number) => void;
  /** Called for a base whose tree the registry doesn't keep. */
  readonly onUnrecorded?: (image: BaseImage, why: Error) => void;
}

interface AskedImage extends BaseImage {
  /** The image that it is made of, if it is made of one; asked for only where nothing of the image is known. */
  readonly stock?: () => Promise<BaseImage | undefined>;
}

const MOST = 4;

/**
 * The trees of base images, each read from its layers once. An image that has the layers of another and more, as that
 * of a container engine, is read from there on.
 */
export class BaseTrees {
  readonly #most: number;
  readonly #onReading: NonNullable<BaseTreesOptions['onReading']>;
  /** Reports a base whose tree the registry doesn't keep. */
  readonly unrecorded: NonNullable<BaseTreesOptions['onUnrecorded']>;
  /** By chain id, the last used at the end. */
  readonly #trees = new Map<Digest, BaseTree>();
  readonly #reading = new Map<Digest, Promise<unknown>>();

  constructor({
    most = MOST,
    onReading = () => undefined,
    onUnrecorded = () => undefined,
  }: BaseTreesOptions = {}) {
    this.#most = most;
    this.#onReading = onReading;
    this.unrecorded = onUnrecorded;
  }

  /**
   * @param kept trees of other processes; reading one verifies it.
   * @throws RegistryError, ContentError
   */
  async treeOf(
    client: RegistryClient,
    image: AskedImage,
    kept: readonly KeptTree[],
    signal: AbortSignal,
  ): Promise<BaseTree> {
    const ids = chainIds(image.description.config.rootfs.diff_ids);
    const id = ids.at(-1);
    // An image without layers has nothing.
    if (id === undefined) return readBaseTree(client, image, undefined, signal);
    for (;;) {
      const there = this.#use(id);
      if (there !== undefined) return there;
      const before = this.#reading.get(id);
      if (before === undefined) break;
      // Another build reads the same layers. If it fails, or is aborted, this one tries with its own credentials.
      await before.catch(() => undefined);
      signal.throwIfAborted();
    }
    const reading = this.#read(client, image, { ids, kept }, signal);
    this.#reading.set(id, reading);
    try {
      const tree = await reading;
      this.#keep(id, tree);
      return tree;
    } finally {
      this.#reading.delete(id);
    }
  }

  /** @returns a tree that is in memory. */
  known(chainId: Digest): BaseTree | undefined {
    return this.#use(chainId);
  }

  async #read(
    client: RegistryClient,
    image: AskedImage,
    { ids, kept }: { readonly ids: readonly Digest[]; readonly kept: readonly KeptTree[] },
    signal: AbortSignal,
  ): Promise<BaseTree> {
    let below = await this.#longest(ids, kept, signal);
    const stock = below === undefined ? await image.stock?.() : undefined;
    if (stock !== undefined && chainIds(stock.description.config.rootfs.diff_ids).at(-1) !== ids.at(-1)) {
      // Other images will be built on it as well.
      await this.treeOf(client, stock, kept, signal);
      below = await this.#longest(ids, kept, signal);
    }
    if (below?.layers === ids.length) return below.tree;
    const unread = image.description.manifest.layers.slice(below?.layers ?? 0);
    this.#onReading(
      image,
      unread.length,
      unread.reduce((sum, { size }) => sum + size, 0),
    );
    return readBaseTree(client, image, below, signal);
  }

  async #longest(
    ids: readonly Digest[],
    kept: readonly KeptTree[],
    signal: AbortSignal,
  ): Promise<TreeBelow | undefined> {
    for (let layers = ids.length; layers > 0; layers -= 1) {
      const id = ids[layers - 1];
      const there = id === undefined ? undefined : this.#use(id);
      if (there !== undefined) return { tree: there, layers };
      for (const { chainId, read } of kept) {
        const tree = chainId === id ? await read(signal) : undefined;
        if (tree !== undefined) return { tree, layers };
      }
    }
    return undefined;
  }

  #use(id: Digest): BaseTree | undefined {
    const tree = this.#trees.get(id);
    if (tree !== undefined) this.#keep(id, tree);
    return tree;
  }

  #keep(id: Digest, tree: BaseTree): void {
    this.#trees.delete(id);
    this.#trees.set(id, tree);
    const [oldest] = this.#trees.keys();
    if (this.#trees.size > this.#most && oldest !== undefined) this.#trees.delete(oldest);
  }
}
