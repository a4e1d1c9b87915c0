import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { PinnedImageSet } from '../../api/pinned-image-set.ts';
import { plural } from '../../api/plural.ts';
import { pinnedImageSetsOf } from '../../machineconfig/pinned-image-sets.ts';

interface SetsAndPools {
  readonly pools: readonly MachineConfigPool[];
  readonly pinnedImageSets: readonly PinnedImageSet[];
}

/** The number of images that the nodes of a pool keep from now on, and that they no longer keep. */
export interface PinnedImagesChange {
  readonly added: number;
  readonly removed: number;
}

/** What PinnedImageSets add to the plan of a pool. */
export interface PlannedPinnedImages {
  /** Images that nodes pull and keep, which is no part of an update; absent when they stay the same. */
  readonly pinnedImages?: PinnedImagesChange | undefined;
}

/** @returns what a change of PinnedImageSets, or of a pool that selects or names them, means for its nodes. */
export function plannedPinnedImages(
  pool: string,
  before: SetsAndPools,
  after: SetsAndPools,
): PlannedPinnedImages {
  const [was, is] = [imagesOf(pool, before), imagesOf(pool, after)];
  const added = [...is].filter((image) => !was.has(image)).length;
  const removed = [...was].filter((image) => !is.has(image)).length;
  return { pinnedImages: added + removed === 0 ? undefined : { added, removed } };
}

function imagesOf(name: string, { pools, pinnedImageSets }: SetsAndPools): ReadonlySet<string> {
  const pool = pools.find(({ metadata }) => metadata.name === name);
  const { sets } = pool === undefined ? { sets: [] } : pinnedImageSetsOf(pool, pinnedImageSets);
  return new Set(sets.flatMap(({ spec }) => spec.pinnedImages.map((image) => image.name)));
}

/** @returns what a plan says of them. */
export function pinningLines({ pinnedImages }: PlannedPinnedImages): string[] {
  if (pinnedImages === undefined) return [];
  const { added, removed } = pinnedImages;
  const parts = [
    ...(added === 0 ? [] : [`pull and keep ${plural(added, 'image')} more, without an update`]),
    ...(removed === 0 ? [] : [`no longer keep ${plural(removed, 'image')}`]),
  ];
  return [`pinned images: nodes ${parts.join(', and ')}`];
}

/**
 * @returns one line for each PinnedImageSet that is for no pool, and for each that a pool names and that is missing.
 */
export function unselectedImages({ pinnedImageSets: sets, pools }: SetsAndPools): readonly string[] {
  if (pools.length === 0) return [];
  const ofPools = pools.map((pool) => ({ pool, ...pinnedImageSetsOf(pool, sets) }));
  const used = new Set(ofPools.flatMap((each) => each.sets));
  return [
    ...sets
      .filter((set) => !used.has(set))
      .map(({ metadata }) => `PinnedImageSet ${metadata.name}: no MachineConfigPool selects or names it`),
    ...ofPools.flatMap(({ pool, missing }) =>
      missing.map(
        (name) =>
          `MachineConfigPool ${pool.metadata.name}: spec.pinnedImageSets: PinnedImageSet ${name} does not exist`,
      ),
    ),
  ];
}
