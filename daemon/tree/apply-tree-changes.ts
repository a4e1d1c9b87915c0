import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import {
  chmod,
  chown,
  type FileHandle,
  lchown,
  lstat,
  mkdir,
  open,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { temporaryName } from './merge-etc.ts';
import type { TreeChange } from './tree-change.ts';
import { ignoreMissing, isMissing } from './tree-entry.ts';

export interface ApplyOptions {
  /** Called, and waited for, before each step is taken: the journal. */
  readonly beforeStep?: (step: TreeChange) => Promise<void>;
  readonly signal: AbortSignal;
}

/** The source of a change is no longer what it was when the change was planned. */
class SourceChangedError extends Error {
  override readonly name = 'SourceChangedError';
}

/** A parent of a changed path is not the directory it was when the change was planned. */
class ParentChangedError extends Error {
  override readonly name = 'ParentChangedError';
}

/**
 * Takes the steps in their order, each atomically and durably: a file or link is made under another name in the same
 * directory and renamed. No file is ever changed in place, since files of an ostree checkout are hard links into the
 * repository. Taken again from the start, all or some of the steps give the same end.
 *
 * @param place where a path of a change lies; of its parents, only what this function adds is followed.
 * @throws SourceChangedError, ParentChangedError, the file system's errors, the signal's reason when aborted between steps.
 */
export async function applyTreeChanges(
  place: TreePlace,
  changes: readonly TreeChange[],
  options: ApplyOptions,
): Promise<void> {
  for (const change of changes) {
    options.signal.throwIfAborted();
    await options.beforeStep?.(change);
    await applyTreeChange(place, change);
  }
}

/** Where a tree lies: `{name: '/etc', directory: '<root>/etc'}`. */
export interface TreePlace {
  readonly name: string;
  readonly directory: string;
}

async function applyTreeChange(place: TreePlace, change: TreeChange): Promise<void> {
  const target = await placeOf(place, change.path, change.kind === 'remove');
  if (target === undefined) return;
  switch (change.kind) {
    case 'directory':
      await makeDirectory(target, change);
      break;
    case 'file':
      await writeFile(target, change);
      break;
    case 'symlink':
      await replace(target, async (temporary) => {
        await symlink(change.target, temporary);
        await lchown(temporary, change.uid, change.gid);
      });
      break;
    case 'remove':
      await remove(target, change.was);
      break;
  }
  await syncDirectory(path.dirname(target));
}

/** @returns the place outside, every parent checked to be a directory and no link; nothing when one is gone and may be. */
async function placeOf(place: TreePlace, name: string, mayBeGone: boolean): Promise<string | undefined> {
  const relative = path.posix.relative(place.name, name);
  const parts = relative.split('/');
  if (relative === '' || parts.includes('..'))
    throw new ParentChangedError(`${name} is not below ${place.name}`);
  let current = place.directory;
  for (const part of parts.slice(0, -1)) {
    current = path.join(current, part);
    const stats = await lstat(current).catch(ignoreMissing);
    if (stats?.isDirectory() === true) continue;
    if (mayBeGone) return undefined;
    throw new ParentChangedError(`${current}: expected a directory, so ${name} can't be written`);
  }
  return path.join(place.directory, ...parts);
}

async function makeDirectory(
  target: string,
  { mode, uid, gid }: Extract<TreeChange, { kind: 'directory' }>,
): Promise<void> {
  const stats = await lstat(target).catch(ignoreMissing);
  if (stats !== undefined && !stats.isDirectory()) await unlink(target);
  if (stats?.isDirectory() !== true) await mkdir(target, { mode: 0o700 });
  await chown(target, uid, gid);
  await chmod(target, mode);
}

async function writeFile(target: string, change: Extract<TreeChange, { kind: 'file' }>): Promise<void> {
  await replace(target, async (temporary) => {
    const source = await open(change.source, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const handle = await open(temporary, 'wx', 0o600);
      try {
        await copyVerified(source, handle, change);
        // chown(2) clears setuid and setgid, so the mode comes after.
        await handle.chown(change.uid, change.gid);
        await handle.chmod(change.mode);
        await handle.sync();
      } finally {
        await handle.close();
      }
    } finally {
      await source.close();
    }
  });
}

async function copyVerified(
  source: FileHandle,
  target: FileHandle,
  change: Extract<TreeChange, { kind: 'file' }>,
): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of source.createReadStream({ autoClose: false })) {
    hash.update(chunk);
    await target.writeFile(chunk);
  }
  const found = hash.digest('hex');
  if (found !== change.sha256) {
    throw new SourceChangedError(`${change.source}: expected sha256:${change.sha256}, found sha256:${found}`);
  }
}

async function replace(target: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = path.join(path.dirname(target), temporaryName(path.basename(target)));
  await rm(temporary, { force: true });
  try {
    await make(temporary);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function remove(target: string, was: 'directory' | 'other'): Promise<void> {
  const stats = await lstat(target).catch(ignoreMissing);
  // Of another kind than planned: a step that was taken before has put something new in its place.
  if (stats === undefined || stats.isDirectory() !== (was === 'directory')) return;
  if (was === 'other') return unlink(target);
  await rmdir(target).catch((error: unknown) => {
    if (isNotEmpty(error) || isMissing(error)) return;
    throw error;
  });
}

function isNotEmpty(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST');
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory).catch(ignoreMissing);
  if (handle === undefined) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
