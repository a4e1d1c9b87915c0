import type { Stats } from 'node:fs';
import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { SetPasswords } from '../host/host.ts';
import type { Relabel } from '../host/selinux-labels.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';

/** A tree that a config speaks of. */
export interface TreeRoots {
  /** The host's root, or a staged deployment's root before a reboot. */
  readonly root: string;
  /** The root that has /var when `root` is a staged deployment: the host's. */
  readonly varRoot?: string;
}

/** Where standard mode writes. */
export interface WriteTarget extends TreeRoots {
  /** Where originals and the log of a write lie: `/var/lib/shale` of the host. */
  readonly stateDir: string;
  readonly setPasswords: SetPasswords;
  readonly relabel: Relabel;
}

/** Where a path of a config lies, every link of its parents followed. */
export interface Location {
  /** What the tree calls it, without links. */
  readonly name: string;
  /** Where it lies outside. */
  readonly place: string;
  /** Parents that are no directories yet, outermost first. */
  readonly missingParents: readonly Parent[];
  /** The name of a parent that is there but no directory; nothing can be written until it is gone. */
  readonly blockedBy: string | undefined;
}

export interface Parent {
  readonly name: string;
  readonly place: string;
}

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/** Paths of a tree by which no file of a config can be reached. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/**
 * Finds where to write a path. Links of its parents are followed as a process chrooted there would follow them, so none
 * leads outside; parents that are missing are to be made, which is why resolveInRoot will not do.
 *
 * @param leaving names of links that are about to be removed, and so lead nowhere.
 * @throws PathError when the path isn't absolute or has too many links on its way.
 */
export async function locate(
  target: TreeRoots,
  name: string,
  leaving: ReadonlySet<string> = new Set(),
): Promise<Location> {
  if (!name.startsWith('/')) throw new PathError(`${JSON.stringify(name)} is not an absolute path`);
  const pending = stepsOf(name);
  const missingParents: Parent[] = [];
  let blockedBy: string | undefined;
  let current = '/';
  let links = 0;
  for (let step = pending.shift(); step !== undefined; step = pending.shift()) {
    const next = step === '..' ? path.posix.dirname(current) : path.posix.join(current, step);
    if (pending.length === 0) return { name: next, place: placeIn(target, next), missingParents, blockedBy };
    const place = placeIn(target, next);
    const stats = await statOf(target, next);
    if (stats?.isSymbolicLink() === true && !leaving.has(next)) {
      links += 1;
      if (links > MAX_LINKS) throw new PathError(`${name}: more than ${MAX_LINKS} symbolic links on the way`);
      const link = await readlink(place);
      pending.unshift(...stepsOf(link));
      if (link.startsWith('/')) current = '/';
      continue;
    }
    if (stats?.isDirectory() !== true) missingParents.push({ name: next, place });
    if (stats?.isDirectory() === false) blockedBy ??= next;
    current = next;
  }
  return { name: current, place: placeIn(target, current), missingParents, blockedBy };
}

const MOUNTS: ReadonlySet<string> = new Set(['/etc', '/var']);

/**
 * A directory node has links where a host has mounts (workshop/sandbox/node/directory-host.ts), and what lies below a mount is
 * called by the mount's name. Such a link is relative and stays in the root; any other is followed as one.
 */
async function statOf(target: TreeRoots, name: string): Promise<Stats | undefined> {
  const place = placeIn(target, name);
  const stats = await lstat(place).catch(ignoreMissing);
  if (stats?.isSymbolicLink() !== true || !MOUNTS.has(name)) return stats;
  const inside = await realpath(path.dirname(place));
  const real = await realpath(place).catch(ignoreMissing);
  return real?.startsWith(`${inside}/`) === true ? stat(real) : stats;
}

function placeIn({ root, varRoot }: TreeRoots, name: string): string {
  const isState = name === '/var' || name.startsWith('/var/');
  return path.join(isState ? (varRoot ?? root) : root, name);
}

function stepsOf(name: string): string[] {
  return name.split('/').filter((part) => part !== '' && part !== '.');
}
