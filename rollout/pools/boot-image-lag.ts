import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { PoolRecord } from './pool-record.ts';
import type { PoolTarget } from './pool-target.ts';

/**
 * How far the image that new nodes of a pool boot is behind what they are updated to once they have joined.
 *
 * @param bootImage from the pool's status.
 * @returns the number of images that the pool was assigned since; 0 if new nodes need no update. Undefined where new
 *   nodes boot the stock image.
 */
export function bootImageLag(
  record: PoolRecord,
  bootImage: string | undefined,
  target: PoolTarget,
): number | undefined {
  const image = imageOfNewNodes(target);
  if (bootImage === undefined || image === undefined) return undefined;
  return imagesBehind(record, bootImage, image);
}

/**
 * How far what new nodes of a pool came with is behind the image that they are to boot: a template of machines that
 * nobody renews shows here, although each of its nodes is updated before pods are scheduled on it.
 *
 * @param bootImage from the pool's status.
 * @param newNodes the MachineConfigNodes of those that have their startup taint.
 * @returns the largest number of images between the two. Undefined where new nodes boot the stock image, and while none
 *   has reported what it runs.
 */
export function newNodesLag(
  record: PoolRecord,
  bootImage: string | undefined,
  newNodes: readonly NewNode[],
): number | undefined {
  const reported = newNodes.filter(({ status }) => status?.mode !== undefined);
  if (bootImage === undefined || reported.length === 0) return undefined;
  return Math.max(...reported.map((node) => outdated(record, bootImage, node)?.behind ?? 0));
}

type NewNode = Pick<MachineConfigNode, 'spec' | 'status'>;

/** What a new node came with in place of the image that it was to boot. */
interface Outdated {
  /** Absent: the stock image. */
  readonly image?: string | undefined;
  /** As of {@link imagesBehind}. */
  readonly behind: number;
}

/** @returns undefined for a node that came with the image, has its pool's target by now, or has not reported. */
export function outdated(
  record: PoolRecord,
  bootImage: string,
  { spec, status }: NewNode,
): Outdated | undefined {
  const image = status?.configImage?.currentImage;
  if (status?.mode === undefined || image === bootImage) return undefined;
  if (image !== undefined && image === spec.configImage?.desiredImage) return undefined;
  return { behind: imagesBehind(record, image, bootImage), image };
}

/**
 * @param image undefined for the stock image.
 * @returns the number of images that the pool was assigned after one, up to another; all up to that for one that isn't
 *   recorded. At least 1 unless they are the same: a rollback goes to an earlier image, which is another all the same.
 */
export function imagesBehind(record: PoolRecord, image: string | undefined, other: string): number {
  if (image === other) return 0;
  const images = record.flatMap(({ spec }) => spec.image ?? []);
  const from = image === undefined ? -1 : images.lastIndexOf(image);
  return Math.max(1, images.lastIndexOf(other) - from);
}

function imageOfNewNodes(target: PoolTarget): string | undefined {
  switch (target.kind) {
    case 'none':
      return undefined;
    case 'standard':
    case 'layered':
    case 'rolled-back':
      return target.target.image;
    case 'awaiting-image':
      return target.initialTarget.image;
  }
}
