import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { FreshCache } from '../fresh-cache.ts';

/**
 * Which nodes have to keep images, kept up to date by events. A pass over a pool reads only these for its counts of
 * pinned images, and in most clusters there are none.
 */
export class NodesWithPinnedImages {
  readonly #cache: Pick<FreshCache<MachineConfigNode>, 'get' | 'onChange'>;
  readonly #names = new Set<string>();

  /** @param cache not started yet. */
  constructor(cache: Pick<FreshCache<MachineConfigNode>, 'get' | 'onChange'>) {
    this.#cache = cache;
    cache.onChange(({ type, object: { metadata, spec } }) => {
      if (type !== 'DELETED' && spec.pinnedImages !== undefined) this.#names.add(metadata.name);
      else this.#names.delete(metadata.name);
    });
  }

  /**
   * @param nodes of a pool, by name: a MachineConfigNode may outlive its node for a moment, and the API server refuses
   *   counts that exceed the number of nodes.
   * @returns those of them that have to keep images.
   */
  among(nodes: Iterable<string>): readonly MachineConfigNode[] {
    if (this.#names.size === 0) return [];
    return [...nodes].filter((name) => this.#names.has(name)).flatMap((name) => this.#cache.get(name) ?? []);
  }
}
