import { z } from 'zod';
import { by } from '../../api/order.ts';
import { stateRecord } from './durable-json.ts';

/**
 * The paths under /etc that Shale itself wrote on the running host, in standard mode or by a live apply, each with the
 * digests of what it may have put there, newest first. ostree can't tell such a file from an admin's edit; by this
 * record Shale can, so that a later image isn't shadowed.
 *
 * A path has several digests only while a write is under way: what was there, what is there on the way, and what will
 * be. Whichever the disk has after a crash, it is Shale's.
 */
export type ManagedPaths = ReadonlyMap<string, readonly string[]>;

const PathsRecord = z.object({
  version: z.literal(1),
  paths: z.record(z.string().startsWith('/'), z.array(z.string()).min(1)),
});

interface PathsOnRecord {
  readonly read: (root: string) => Promise<ManagedPaths | undefined>;
  readonly write: (root: string, paths: ManagedPaths) => Promise<void>;
}

/** @returns a record of paths with their digests, kept in a file of this name. */
function pathsRecord(name: string): PathsOnRecord {
  const { read, write } = stateRecord(name, PathsRecord);
  return {
    read: async (root) => {
      const record = await read(root);
      return record && new Map(Object.entries(record.paths));
    },
    write: (root, paths) => {
      const sorted = [...paths].sort(by(([path]) => path));
      return write(root, { version: 1, paths: Object.fromEntries(sorted) });
    },
  };
}

const managedPaths = pathsRecord('managed-paths.json');

/**
 * @param root the running root.
 * @returns the record; empty when nothing was written yet.
 * @throws RecordError when the file isn't one: what Shale wrote can't be told from an admin's edits.
 */
export async function readManagedPaths(root: string): Promise<ManagedPaths> {
  return (await managedPaths.read(root)) ?? new Map();
}

/** Writes the record, whole or not at all, and durably. @param root the running root. */
export const writeManagedPaths = managedPaths.write;

/**
 * The paths outside of /etc and /usr, which no image carries and every image shares, that configs have put on this
 * node, each with the digests of what was rendered. What is on record and in no config any more is taken away by it,
 * after a live apply and a reboot, a rollback and the way out of layering.
 */
export const { read: readStatePaths, write: writeStatePaths } = pathsRecord('state-paths.json');

/**
 * @param name absolute and without links: where a host has /usr/local in /var, it is not below /usr.
 * @returns whether a path lies outside of /etc and /usr.
 */
export function isStatePath(name: string): boolean {
  return !/^\/(etc|usr)(\/|$)/.test(name);
}

/**
 * The record to write before paths are changed.
 *
 * @param changes what each path is about to hold (`ABSENT`: to be removed), the last first, then what it holds on the
 *   way there.
 * @returns the record in which both the present and the coming content count as Shale's.
 */
export function intendManagedPaths(managed: ManagedPaths, changes: ManagedPaths): ManagedPaths {
  const intended = new Map(managed);
  for (const [path, digests] of changes) {
    intended.set(path, [...new Set([...digests, ...(managed.get(path) ?? [])])]);
  }
  return intended;
}

/** @returns the record after all intended changes were made: only the newest digest of each path. */
export function settleManagedPaths(managed: ManagedPaths): ManagedPaths {
  return new Map([...managed].map(([path, digests]) => [path, digests.slice(0, 1)]));
}

/** @returns whether this content is what Shale put there. */
export function isManaged(managed: ManagedPaths, path: string, digest: string): boolean {
  return managed.get(path)?.includes(digest) ?? false;
}

/** @returns one record of all; a digest in any of them is Shale's. */
export function mergeManaged(...records: readonly ManagedPaths[]): ManagedPaths {
  const merged = new Map<string, readonly string[]>();
  for (const record of records) {
    for (const [name, digests] of record) {
      merged.set(name, [...new Set([...(merged.get(name) ?? []), ...digests])]);
    }
  }
  return merged;
}

const UnlabelledPathsRecord = z.object({ version: z.literal(1), paths: z.array(z.string().startsWith('/')) });

const unlabelled = stateRecord('unlabelled-paths.json', UnlabelledPathsRecord);

/**
 * Paths of the running root that a live apply writes and has not given their SELinux labels yet. What was written
 * before a crash has the right content by then, so that nothing but this record tells that its label is still its
 * directory's.
 *
 * @returns none where no apply was interrupted. @throws RecordError
 */
export async function readUnlabelledPaths(root: string): Promise<readonly string[]> {
  return (await unlabelled.read(root))?.paths ?? [];
}

/** Writes the record, whole or not at all, and durably: before the first of the paths is written. */
export async function writeUnlabelledPaths(root: string, paths: readonly string[]): Promise<void> {
  await unlabelled.write(root, { version: 1, paths });
}

/** All of them have their labels. */
export const forgetUnlabelledPaths = unlabelled.remove;
