import type { Location } from '../../files/host-tree.ts';
import { isStatePath } from '../../records/state-paths.ts';
import type { Desired } from '../entries/desired-tree.ts';
import { isOfImage, type ManagedContent } from '../managed-content.ts';
import type { WriteTarget } from './write-log.ts';

/** A write in whichever way the node has its content: written by its daemon, or brought by an image. */
export interface ContentWrite {
  /** What the last write left; undefined where nothing of Shale's is on the disk. */
  readonly from: ManagedContent | undefined;
  readonly to: ManagedContent;
  /** Overwrite what somebody else changed. */
  readonly force?: boolean;
  /** Remove what is no directory on the way to a path. */
  readonly clearsObstacles?: boolean;
  /** The image of `to` is booted: what is as it wants came with it, by the fragment for a machine's first boot. */
  readonly isBooted?: boolean;
  /** Only what lies in /etc, or only what lies outside of /etc and /usr; absent: all of it. */
  readonly scope?: 'etc' | 'state';
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
 * @returns whether a write has to see to a path; one that it has not is as the image, or the running system, has it.
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
