import type { LayerEntry, LayerItem } from '../layer/entry.ts';
import type { BaseTree } from './base-tree.ts';
import { LayerFold } from './fold-layers.ts';

/**
 * Puts a layer on what is known of a base (docs/decisions/0034-contents-of-built-images.md).
 *
 * @param base is not changed.
 * @returns what a base and one layer on it make together, as if the layer had been read from a registry.
 */
export async function treeWithLayer(base: BaseTree, entries: readonly LayerEntry[]): Promise<BaseTree> {
  const fold = new LayerFold(base);
  await fold.add(itemsOf(entries));
  return fold.finish();
}

async function* itemsOf(entries: readonly LayerEntry[]): AsyncGenerator<LayerItem> {
  for (const entry of entries) yield { ...entry, path: entry.path.slice(1) };
}
