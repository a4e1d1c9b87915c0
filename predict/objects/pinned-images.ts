import { pinnedImageSetsOf } from '../../machineconfig/pinned-image-sets.ts';
import type { OfflineCluster } from './offline-cluster.ts';

/** The number of images that the nodes of a pool keep from now on, and that they no longer keep. */
export interface PinnedImagesChange {
  readonly added: number;
  readonly removed: number;
}

/** @returns what a change of PinnedImageSets, or of a pool that selects or names them, means for its nodes. */
export function pinnedImagesChange(
  pool: string,
  before: OfflineCluster,
  after: OfflineCluster,
): PinnedImagesChange | undefined {
  const [was, is] = [imagesOf(pool, before), imagesOf(pool, after)];
  const change = {
    added: [...is].filter((image) => !was.has(image)).length,
    removed: [...was].filter((image) => !is.has(image)).length,
  };
  return change.added + change.removed === 0 ? undefined : change;
}

function imagesOf(name: string, { pools, pinnedImageSets }: OfflineCluster): ReadonlySet<string> {
  const pool = pools.find(({ metadata }) => metadata.name === name);
  const { sets } = pool === undefined ? { sets: [] } : pinnedImageSetsOf(pool, pinnedImageSets);
  return new Set(sets.flatMap(({ spec }) => spec.pinnedImages.map((image) => image.name)));
}
