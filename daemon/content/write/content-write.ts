import type { Location } from '../../files/host-tree.ts';
import { isStatePath } from '../../records/managed-paths.ts';
import type { Desired, ManagedContent } from '../entries/desired-tree.ts';
import { isOfImage } from '../managed-content.ts';
import type { WriteTarget } from './write-log.ts';

/** A write from one content to another, in either mode. */
export interface ContentWrite {
  /** What the last write left; undefined where nothing of Shale's is on the disk. */
  readonly from: ManagedContent | undefined;
  readonly to: ManagedContent;
  /** Overwrite what somebody else changed. */
  readonly force?: boolean;
  /** Remove parents of a path that are no directories. */
  readonly clearsObstacles?: boolean;
  /** The image of `to` is booted: what is as `to` wants it came with the image (tmpfiles fragment of a first boot). */
  readonly isBooted?: boolean;
  /** Only what lies in /etc, or only what lies outside of /etc and /usr; absent: all of it. */
  readonly scope?: 'etc' | 'state' | undefined;
}

/** Where a write is to come, and its records. */
export type WritePlace = Omit<WriteTarget, 'setPasswords' | 'relabel'>;

/** @returns the root that has the records of a write. */
export function recordRoot({ root, varRoot }: WritePlace): string {
  return varRoot ?? root;
}

/** @returns whether content is brought by an image. */
export function isByImage(content: ManagedContent | undefined): boolean {
  return content?.delivery === 'Layered';
}

/**
 * @returns whether a write is about a path; any other path stays as the image, or the running system, has it.
 */
export function isWritten(
  { from, to, scope }: ContentWrite,
  {
    location: { name },
    to: desired,
  }: { readonly location: Pick<Location, 'name'>; readonly to: Desired | undefined },
): boolean {
  if (desired?.unknownOwner !== undefined) return false;
  if (scope === 'etc' && !name.startsWith('/etc/')) return false;
  if (scope === 'state' && !isStatePath(name)) return false;
  return !isOfImage(name) || !isByImage(desired === undefined ? from : to);
}
