import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { HostDirectory } from '../host-files/host-directory.ts';
import { hasCode, PathError } from '../host-files/host-file-error.ts';
import { HostTree } from '../host-files/host-tree.ts';
import {
  type ContentDigest,
  contentDigest,
  ignoreMissing,
  readTreeEntry,
  sameEntry,
  type TreeEntry,
} from './tree-entry.ts';

/** A directory tree without its root: entries by absolute path as the host knows it (`/etc/chrony.conf`). */
export type Tree = ReadonlyMap<string, TreeEntry>;

/**
 * Lists a whole tree, contents digested. Meant for /etc: everything is read, and no link is followed, also where a directory becomes one
 * meanwhile.
 *
 * @param directory where it lies. @param name what the host calls it (`/etc`).
 * @returns its entries, empty when there is no such directory. @throws the signal's reason when aborted.
 */
export async function readTree(directory: string, name: string, signal: AbortSignal): Promise<Tree> {
  const tree = new Map<string, TreeEntry>();
  await using top = await HostDirectory.open(directory, name).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
  if (top !== undefined) await readInto(tree, top, signal);
  return tree;
}

async function readInto(
  tree: Map<string, TreeEntry>,
  directory: HostDirectory,
  signal: AbortSignal,
): Promise<void> {
  for (const base of await directory.list()) {
    signal.throwIfAborted();
    const entry = await directory.entry(base);
    if (entry === undefined) continue;
    tree.set(path.posix.join(directory.name, base), entry);
    if (entry.kind !== 'directory') continue;
    await using below = await directory.child(base).catch(ignoreReplaced);
    if (below !== undefined) await readInto(tree, below, signal);
  }
}

/** What was a directory a moment ago has nothing in it now. */
function ignoreReplaced(error: unknown): undefined {
  if (!(error instanceof PathError)) throw error;
}

export interface TreeDifference {
  /** What the first tree has at the paths where they differ. */
  readonly current: Tree;
  /** What the second has there. */
  readonly target: Tree;
}

/**
 * Lists where two trees differ. Meant for /usr: deployments of one ostree repository share the inodes of equal files, so
 * all but a few are told equal by inode number, without reading them.
 *
 * @param current where the first lies. @param target where the second lies. @param name what the host calls it (`/usr`).
 * @param skip paths to leave out with everything below them.
 * @throws the signal's reason when aborted.
 */
export async function compareTrees(
  current: string,
  target: string,
  name: string,
  skip: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<TreeDifference> {
  const difference = { current: new Map<string, TreeEntry>(), target: new Map<string, TreeEntry>() };
  const pending = [''];
  for (let relative = pending.pop(); relative !== undefined; relative = pending.pop()) {
    const names = new Set([
      ...(await namesIn(path.join(current, relative))),
      ...(await namesIn(path.join(target, relative))),
    ]);
    for (const child of names) {
      signal.throwIfAborted();
      const below = path.posix.join(relative, child);
      const childName = path.posix.join(name, below);
      if (skip.has(childName)) continue;
      const entries = await differingEntries(path.join(current, below), path.join(target, below));
      if (entries === undefined) continue;
      if (entries.current !== undefined) difference.current.set(childName, entries.current);
      if (entries.target !== undefined) difference.target.set(childName, entries.target);
      if (entries.current?.kind === 'directory' || entries.target?.kind === 'directory') pending.push(below);
    }
  }
  return difference;
}

/**
 * @returns what lies at two paths; undefined where it is the same. Two directories never are: what is in them still has to
 *   be compared.
 */
async function differingEntries(
  current: string,
  target: string,
): Promise<{ readonly current: TreeEntry | undefined; readonly target: TreeEntry | undefined } | undefined> {
  const [a, b] = await Promise.all([statOf(current), statOf(target)]);
  if (a !== undefined && b !== undefined && isSameFile(a, b)) return undefined;
  const entries = { current: await readTreeEntry(current), target: await readTreeEntry(target) };
  if (entries.current?.kind === 'directory') return entries;
  return sameEntry(entries.current, entries.target) ? undefined : entries;
}

type InodeStats = Pick<BigIntStats, 'ino' | 'dev' | 'ctimeNs' | 'size' | 'isFile'>;

/**
 * One inode, or a file of an overlay (`ostree admin unlock`, `bootc usr-overlay`) whose lower one is that inode. An overlay
 * has a device number of its own and keeps a file's inode number when it is written to, but then the change time is
 * the copy's (Linux, Documentation/filesystems/overlayfs.rst, "Inode properties").
 *
 * @param a what lstat(2) has of one. @param b of the other.
 * @returns whether they have the same content without being read.
 */
export function isSameFile(a: InodeStats, b: InodeStats): boolean {
  if (a.ino !== b.ino) return false;
  return a.dev === b.dev || (a.isFile() && b.isFile() && a.ctimeNs === b.ctimeNs && a.size === b.size);
}

async function statOf(place: string): Promise<BigIntStats | undefined> {
  // Inode numbers of XFS don't fit into a double.
  return lstat(place, { bigint: true }).catch(ignoreMissing);
}

async function namesIn(directory: string): Promise<string[]> {
  const entries: Dirent[] = (await readdir(directory, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  return entries.map(({ name }) => name);
}

/**
 * @param root the running root. @param path absolute, within the root.
 * @returns the content digest of what is there now.
 */
export async function contentDigestAt(root: string, path: string): Promise<ContentDigest> {
  await using tree = new HostTree({ root });
  const { name } = await tree.locate(path);
  return contentDigest(await tree.entry(name));
}
