import { errorMessage } from '../../../api/error-message.ts';
import { HostTree } from '../../files/host-tree.ts';
import { contentDigest } from '../../files/tree-entry.ts';
import {
  isManaged,
  isStatePath,
  type ManagedPaths,
  mergeManaged,
  readStatePaths,
  writeStatePaths,
} from '../../records/managed-paths.ts';
import { desiredTree, HASH_UP_TO, type ManagedContent } from '../entries/desired-tree.ts';
import { releasePaths, UndoError, type WriteTarget } from './write-content.ts';

/** What became of paths that no config has any more. */
export interface StateSettled {
  readonly removed: readonly string[];
  /** As text, one for each path that is there still: which, and why. */
  readonly left: readonly string[];
}

/**
 * Takes away what is on record and no part of what the node runs, where it is as it was rendered, and gives back what
 * was there before; what somebody has changed since, and a directory with something in it, stays.
 *
 * @param target the running root. @param content what the node runs; undefined where that is nothing of Shale's.
 * @throws RecordError, UndoError, the signal's reason when aborted.
 */
export async function settleStateContent(
  target: WriteTarget,
  content: ManagedContent | undefined,
  signal: AbortSignal,
): Promise<StateSettled> {
  const { root } = target;
  const kept = await stateContentOf(root, content);
  const record = (await readStatePaths(root)) ?? new Map();
  const outcomes = new Map<string, Outcome>();
  for (const name of [...record.keys()].sort()) {
    if (!kept.has(name)) outcomes.set(name, await outcomeOf(root, record, name));
  }
  const named = (kind: Outcome) =>
    [...outcomes].flatMap(([name, outcome]) => (outcome === kind ? [name] : []));
  const ours = named('ours');
  const unreachable = named('unreachable').map(
    (name) => [name, 'a link on the way is not followed'] as const,
  );
  const failures = new Map([...(await release(target, ours, new Set(kept.keys()), signal)), ...unreachable]);
  const again = new Map([...failures.keys()].map((name) => [name, record.get(name) ?? []]));
  await writeStatePaths(root, mergeManaged(kept, again));
  const removed: string[] = [];
  for (const name of ours) {
    if (!failures.has(name) && (await outcomeOf(root, record, name)) !== 'ours') removed.push(name);
  }
  return {
    removed,
    left: [
      ...named('changed').map((name) => `${name} was changed on the node`),
      ...[...failures].map(([name, why]) => `${name} could not be removed: ${why}`),
    ].sort(),
  };
}

/**
 * What lies at a path on record: as Shale brought it, as somebody has made it since, or nothing that concerns Shale; a
 * link on the way that somebody has made leads nowhere.
 */
type Outcome = 'ours' | 'changed' | 'gone' | 'unreachable';

async function outcomeOf(root: string, record: ManagedPaths, name: string): Promise<Outcome> {
  await using tree = new HostTree({ root });
  const location = await tree.find(name);
  if (location === undefined) return 'unreachable';
  const isReached = location.name === name && location.missingParents.length === 0;
  const entry = isReached ? await tree.entry(name, HASH_UP_TO) : undefined;
  if (entry === undefined) return 'gone';
  if (isManaged(record, name, contentDigest(entry))) return 'ours';
  return entry.kind === 'directory' ? 'gone' : 'changed';
}

/**
 * All at once, and where that fails one by one: a single path that can't be removed must not keep the others there.
 *
 * @returns why, for each that is there still.
 */
async function release(
  target: WriteTarget,
  names: readonly string[],
  kept: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const failures = new Map<string, string>();
  const attempt = async (each: readonly string[]): Promise<unknown> => {
    try {
      if (each.length > 0) await releasePaths(target, { names: each, kept }, { signal });
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UndoError) throw error;
      return error;
    }
  };
  if ((await attempt(names)) === undefined) return failures;
  for (const name of names.toReversed()) {
    const error = await attempt([name]);
    if (error !== undefined) failures.set(name, errorMessage(error));
  }
  return failures;
}

/**
 * @param root the running root. @param content what the node runs.
 * @returns the state paths on record that have what Shale brought, and are otherwise in the content, or not part of it:
 *   the host has rolled back from what brought them.
 */
export async function leftOfOthers(root: string, content: ManagedContent): Promise<readonly string[]> {
  const own = await stateContentOf(root, content);
  const record = (await readStatePaths(root)) ?? new Map();
  const left: string[] = [];
  for (const name of record.keys()) {
    const isWanted = own.has(name) && (await outcomeOf(root, own, name)) === 'ours';
    if (!isWanted && (await outcomeOf(root, record, name)) === 'ours') left.push(name);
  }
  return left;
}

/** @returns what content has outside of /etc and /usr, by the names that the tree itself has for the paths. */
async function stateContentOf(root: string, content: ManagedContent | undefined): Promise<ManagedPaths> {
  const paths = new Map<string, readonly string[]>();
  if (content === undefined) return paths;
  await using tree = new HostTree({ root });
  const desired = await desiredTree({ root }, content);
  for (const [name, { entry, unknownOwner }] of desired) {
    // What can't be reached was not put there either.
    const location = await tree.find(name);
    if (entry === undefined || location === undefined || unknownOwner !== undefined) continue;
    if (isStatePath(location.name)) paths.set(location.name, [contentDigest(entry)]);
  }
  return paths;
}
