import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { HostDirectory } from './host-directory.ts';
import { hasCode, PathError } from './host-file-error.ts';
import { HostTree } from './host-tree.ts';
import type { TreeChange } from './tree-change.ts';

export interface ApplyOptions {
  /** Called, and waited for, before each step is taken: the journal. */
  readonly beforeStep?: (step: TreeChange) => Promise<void>;
  readonly signal: AbortSignal;
}

/** The source of a change is no longer what it was when the change was planned. */
class SourceChangedError extends Error {
  override readonly name = 'SourceChangedError';
}

/**
 * Takes the steps in their order, each atomically and durably: a file or link is made under another name in the same
 * directory and renamed. No file is ever changed in place, since files of an ostree checkout are hard links into the
 * repository. Taken again from the start, all or some of the steps give the same end.
 *
 * @param root of the tree. No link below it is followed.
 * @throws {PathError} when a parent of a changed path is not the directory it was when the change was planned;
 *   SourceChangedError; the file system's errors; the signal's reason when aborted between steps.
 */
export async function applyTreeChanges(
  root: string,
  changes: readonly TreeChange[],
  options: ApplyOptions,
): Promise<void> {
  await using tree = new HostTree({ root });
  for (const change of changes) {
    options.signal.throwIfAborted();
    await options.beforeStep?.(change);
    const directory =
      change.kind === 'remove' ? await parentLeft(tree, change.path) : await tree.parentOf(change.path);
    if (directory === undefined) continue;
    await applyTreeChange(directory, change);
    await directory.sync();
  }
}

/** Below what is no directory any more is nothing to remove. */
async function parentLeft(tree: HostTree, name: string): Promise<HostDirectory | undefined> {
  return tree.directory(path.posix.dirname(name)).catch((error: unknown) => {
    if (!(error instanceof PathError)) throw error;
    return undefined;
  });
}

async function applyTreeChange(directory: HostDirectory, change: TreeChange): Promise<void> {
  const base = path.posix.basename(change.path);
  switch (change.kind) {
    case 'directory': {
      const stats = await directory.stat(base);
      if (stats !== undefined && !stats.isDirectory()) await directory.remove(base);
      return directory.makeDirectory(base, change);
    }
    case 'file':
      return writeFile(directory, base, change);
    case 'symlink':
      return directory.replaceLink(base, change.target, change);
    case 'remove':
      return remove(directory, base, change.was);
  }
}

async function writeFile(
  directory: HostDirectory,
  base: string,
  change: Extract<TreeChange, { kind: 'file' }>,
): Promise<void> {
  const source = await open(change.source, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await directory.replaceWithCopy(base, source, {
      attributes: change,
      verify: (copy) => requireContent(copy, change),
    });
  } finally {
    await source.close();
  }
}

async function requireContent(
  copy: FileHandle,
  { source, sha256 }: Extract<TreeChange, { kind: 'file' }>,
): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of copy.createReadStream({ autoClose: false, start: 0 })) hash.update(chunk);
  const digest = hash.digest('hex');
  if (digest !== sha256) {
    throw new SourceChangedError(`${source}: expected sha256:${sha256}, found sha256:${digest}`);
  }
}

async function remove(directory: HostDirectory, base: string, was: 'directory' | 'other'): Promise<void> {
  const stats = await directory.stat(base);
  // Of another kind than planned: a step that was taken before has put something new in its place.
  if (stats === undefined || stats.isDirectory() !== (was === 'directory')) return;
  if (was === 'other') return directory.remove(base);
  await directory.removeDirectory(base).catch((error: unknown) => {
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR')) throw error;
  });
}
