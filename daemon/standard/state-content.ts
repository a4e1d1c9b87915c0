import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { HostTree } from '../host-files/host-tree.ts';
import { removeIfEmpty } from '../host-files/put-file.ts';
import { isManaged, type ManagedPaths, mergeManaged } from '../records/managed-paths.ts';
import { isStatePath, readStatePaths, writeStatePaths } from '../records/state-paths.ts';
import { contentDigest } from '../tree/tree-entry.ts';
import { desiredTree, HASH_UP_TO } from './desired-tree.ts';
import type { ManagedContent } from './managed-content.ts';
import { type Original, originalAt, readOriginals } from './originals.ts';

/** What became of paths that no config has any more. */
export interface StateSettled {
  readonly removed: readonly string[];
  /** As text, one for each path that is there still: which, and why. */
  readonly left: readonly string[];
}

/**
 * Puts what configs have outside of /etc and /usr on record, before any of it comes to the disk.
 *
 * @param root the running root. @param contents the one that the node has, and the one that it gets.
 * @throws RecordError
 */
export async function recordStateContent(
  root: string,
  contents: readonly (ManagedContent | undefined)[],
): Promise<void> {
  const each = await Promise.all(contents.map((content) => stateContentOf(root, content)));
  const before = await readStatePaths(root);
  const paths = mergeManaged(before ?? new Map(), ...each);
  if (before === undefined || paths.size > 0) await writeStatePaths(root, paths);
}

/** Forgets everything but what a config has: a write in standard mode has put back the rest itself. @throws RecordError */
export async function writeStateContent(root: string, content: ManagedContent): Promise<void> {
  await writeStatePaths(root, await stateContentOf(root, content));
}

/**
 * Removes what is on record and no part of what the node runs, where it is as it was rendered; what somebody has changed
 * since, and a directory with something in it, stays. What standard mode had taken over from others comes back.
 *
 * @param root the running root. @param content what the node runs.
 * @throws RecordError, the signal's reason when aborted.
 */
export async function settleStateContent(
  root: string,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<StateSettled> {
  const kept = await stateContentOf(root, content);
  const record = (await readStatePaths(root)) ?? new Map();
  const removed: string[] = [];
  const left: string[] = [];
  const again = new Map<string, readonly string[]>();
  const { paths: originals } = await readOriginals(stateDirIn(root));
  await using tree = new HostTree({ root });
  for (const [name, digests] of [...record].sort().reverse()) {
    if (kept.has(name)) continue;
    signal.throwIfAborted();
    try {
      const outcome = await removeAsRendered(tree, name, { record, original: originals.get(name) });
      if (outcome === 'removed') removed.push(name);
      if (outcome === 'changed') left.push(`${name} was changed on the node`);
    } catch (error) {
      signal.throwIfAborted();
      again.set(name, digests);
      left.push(`${name} could not be removed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  await writeStatePaths(root, mergeManaged(kept, again));
  return { removed: removed.reverse(), left: left.reverse() };
}

async function removeAsRendered(
  tree: HostTree,
  name: string,
  { record, original }: { readonly record: ManagedPaths; readonly original: Original | undefined },
): Promise<'removed' | 'gone' | 'changed'> {
  const { name: found, missingParents } = await tree.locate(name);
  const entry = missingParents.length > 0 ? undefined : await tree.entry(found, HASH_UP_TO);
  if (entry === undefined || found !== name) return 'gone';
  if (!isManaged(record, name, contentDigest(entry))) return entry.kind === 'directory' ? 'gone' : 'changed';
  const directory = await tree.parentOf(name);
  const base = path.posix.basename(name);
  if (original?.kind === 'directory') return 'gone';
  if (original?.kind === 'copy') {
    await directory.copyFrom(base, originalAt(stateDirIn(tree.roots.root), name));
  } else if (entry.kind !== 'directory') {
    await directory.remove(base);
  } else {
    // What is in it is the admin's.
    if (!(await removeIfEmpty(directory, base))) return 'gone';
  }
  await directory.sync();
  return 'removed';
}

function stateDirIn(root: string): string {
  return path.join(root, nodePaths.state);
}

/** @returns what a config has outside of /etc and /usr, by the names that the tree itself has for the paths. */
async function stateContentOf(root: string, content: ManagedContent | undefined): Promise<ManagedPaths> {
  const paths = new Map<string, readonly string[]>();
  if (content === undefined) return paths;
  await using tree = new HostTree({ root });
  for (const [name, { entry }] of await desiredTree({ root }, content.config, content.delivery)) {
    // What can't be reached was not put there either.
    const location = await tree.find(name);
    if (entry === undefined || location === undefined) continue;
    if (isStatePath(location.name)) paths.set(location.name, [contentDigest(entry)]);
  }
  return paths;
}
