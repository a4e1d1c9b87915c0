import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { HostDirectory } from './host-directory.ts';
import { hasCode, PathError } from './host-file-error.ts';
import { HostTree } from './host-tree.ts';
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
 * Lists a whole tree, contents digested. Meant for /etc: everything is read, and no link is followed, also where a
 * directory becomes one meanwhile.
 *
 * @param directory where it lies. @param name what the host calls it (`/etc`). @param hashUpTo see readTreeEntry.
 * @returns its entries, empty when there is no such directory. @throws the signal's reason when aborted.
 */
export async function readTree(
  directory: string,
  name: string,
  signal: AbortSignal,
  hashUpTo?: number,
): Promise<Tree> {
  const tree = new Map<string, TreeEntry>();
  await using top = await HostDirectory.open(directory, name).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
  if (top !== undefined) await readInto(tree, top, { signal, hashUpTo });
  return tree;
}

async function readInto(
  tree: Map<string, TreeEntry>,
  directory: HostDirectory,
  options: { readonly signal: AbortSignal; readonly hashUpTo: number | undefined },
): Promise<void> {
  for (const base of await directory.list()) {
    options.signal.throwIfAborted();
    const entry = await directory.entry(base, options.hashUpTo);
    if (entry === undefined) continue;
    tree.set(path.posix.join(directory.name, base), entry);
    if (entry.kind !== 'directory') continue;
    await using below = await directory.child(base).catch(ignoreReplaced);
    if (below !== undefined) await readInto(tree, below, options);
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
 * Lists where two trees differ. Meant for /usr: deployments of one ostree repository share the inodes of equal files,
 * so most files are known to be equal by their inode number, without reading them.
 *
 * @param current where the first lies. @param target where the second lies. @param name what the host calls it
 *   (`/usr`).
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
  const pending: Pair[] = [{ current, target, name }];
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    for (const child of await childrenOf(pair)) {
      signal.throwIfAborted();
      if (skip.has(child.name)) continue;
      const entries = await differingEntries(child);
      if (entries === undefined) continue;
      if (entries.current !== undefined) difference.current.set(child.name, entries.current);
      if (entries.target !== undefined) difference.target.set(child.name, entries.target);
      const below = directoriesOf(child, entries);
      if (below !== undefined) pending.push(below);
    }
  }
  return difference;
}

/** Where two trees have what is compared; undefined where the directory above it is missing, or is none. */
interface Pair {
  readonly current: string | undefined;
  readonly target: string | undefined;
  readonly name: string;
}

interface Entries {
  readonly current: TreeEntry | undefined;
  readonly target: TreeEntry | undefined;
}

async function childrenOf({ current, target, name }: Pair): Promise<readonly Pair[]> {
  const names = new Set([...(await namesIn(current)), ...(await namesIn(target))]);
  return [...names].map((child) => ({
    current: current === undefined ? undefined : path.join(current, child),
    target: target === undefined ? undefined : path.join(target, child),
    name: path.posix.join(name, child),
  }));
}

/** A link to a directory is a link: what is in that directory is not below it. */
function directoriesOf({ current, target, name }: Pair, entries: Entries): Pair | undefined {
  const below = {
    current: entries.current?.kind === 'directory' ? current : undefined,
    target: entries.target?.kind === 'directory' ? target : undefined,
  };
  return below.current === undefined && below.target === undefined ? undefined : { ...below, name };
}

/**
 * @returns what lies at two paths; undefined where it is the same. Two directories never are: what is in them still has
 *   to be compared.
 */
async function differingEntries({ current, target }: Pair): Promise<Entries | undefined> {
  const [a, b] = await Promise.all([statOf(current), statOf(target)]);
  if (a !== undefined && b !== undefined && isSameFile(a, b)) return undefined;
  const entries = { current: await entryOf(current), target: await entryOf(target) };
  if (entries.current?.kind === 'directory') return entries;
  return sameEntry(entries.current, entries.target) ? undefined : entries;
}

type InodeStats = Pick<BigIntStats, 'ino' | 'dev' | 'ctimeNs' | 'size' | 'isFile'>;

/**
 * One inode, or a file of an overlay (`ostree admin unlock`, `bootc usr-overlay`) whose lower one is that inode. An
 * overlay has a device number of its own and keeps a file's inode number when it is written to, but then the change
 * time is the copy's (Linux, Documentation/filesystems/overlayfs.rst, "Inode properties").
 *
 * @param a what lstat(2) has of one. @param b of the other.
 * @returns whether they have the same content without being read.
 */
export function isSameFile(a: InodeStats, b: InodeStats): boolean {
  if (a.ino !== b.ino) return false;
  return a.dev === b.dev || (a.isFile() && b.isFile() && a.ctimeNs === b.ctimeNs && a.size === b.size);
}

async function entryOf(place: string | undefined): Promise<TreeEntry | undefined> {
  return place === undefined ? undefined : readTreeEntry(place);
}

async function statOf(place: string | undefined): Promise<BigIntStats | undefined> {
  // Inode numbers of XFS don't fit into a double.
  return place === undefined ? undefined : lstat(place, { bigint: true }).catch(ignoreMissing);
}

async function namesIn(directory: string | undefined): Promise<string[]> {
  if (directory === undefined) return [];
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
