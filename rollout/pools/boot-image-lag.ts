import type { PoolRecord } from './pool-record.ts';
import type { PoolTarget } from './pool-target.ts';

/**
 * How far the image that new nodes of a pool boot is behind what they are updated to once they have joined.
 *
 * @param bootImage from the pool's status.
 * @returns the number of images that the pool was assigned since; 0 if new nodes need no update. Undefined where new nodes boot
 *   the stock image.
 */
export function bootImageLag(
  record: PoolRecord,
  bootImage: string | undefined,
  target: PoolTarget,
): number | undefined {
  const image = imageForNewcomers(target);
  if (bootImage === undefined || image === undefined) return undefined;
  if (bootImage === image) return 0;
  const images = record.flatMap(({ spec }) => spec.image ?? []);
  // A rollback goes to an earlier image, which is another all the same.
  return Math.max(1, images.lastIndexOf(image) - images.lastIndexOf(bootImage));
}

function imageForNewcomers(target: PoolTarget): string | undefined {
  switch (target.kind) {
    case 'none':
      return undefined;
    case 'standard':
    case 'layered':
    case 'held':
      return target.target.image;
    case 'awaiting-image':
      return target.newcomer.image;
  }
}
