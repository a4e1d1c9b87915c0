import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { Attributes, HostDirectory } from './host-directory.ts';
import { hasCode, PathError } from './host-file-error.ts';
import { HostTree, type TreeRoots } from './host-tree.ts';

/**
 * One step that brings a tree nearer to what it is to be, at a name that `HostTree.locate` found. Each is atomic for
 * those who read the tree, and harmless to repeat.
 */
export type WriteStep = { readonly name: string } & (
  | ({ readonly kind: 'file'; readonly contents: Uint8Array } & Attributes)
  /** `source` is the place of another tree's file, copied with its extended attributes. */
  | ({ readonly kind: 'copy'; readonly source: string; readonly sha256: string } & Attributes)
  /**
   * `isParent`: it was missing when the write was planned; one that is there by now stays as it is. `replaces`: in
   * place of a file or link, which is gone a moment before.
   */
  | ({ readonly kind: 'directory'; readonly isParent?: boolean; readonly replaces?: boolean } & Attributes)
  | ({ readonly kind: 'symlink'; readonly target: string } & Pick<Attributes, 'uid' | 'gid'>)
  /** `source` is the name, without links, of what the inode is shared with. */
  | { readonly kind: 'hard link'; readonly source: string }
  /** `source` is the place of what comes back; only root can write there. */
  | { readonly kind: 'restore'; readonly source: string }
  /** Of what is no directory. */
  | { readonly kind: 'remove' }
  /** A directory that nobody asked for by itself goes only when it is empty: what is in it may be the admin's. */
  | { readonly kind: 'remove directory'; readonly evenIfNotEmpty: 'leave' | 'fail' }
);

/** @returns whether the step removes something. */
export function isRemoval({ kind }: Pick<WriteStep, 'kind'>): boolean {
  return kind === 'remove' || kind === 'remove directory';
}

/**
 * Takes steps in their order, each durably. No file is changed in place: files of an ostree checkout are hard links
 * into the repository.
 *
 * @param options `beforeStep` is called, and waited for, before each of them, with the tree that it is taken in.
 * @throws {PathError} when a parent is not a directory, or has become a link; Error where a source has changed;
 *   {HostFileError} for the system's errors; the signal's reason when aborted between steps.
 */
export async function takeSteps(
  roots: TreeRoots,
  steps: readonly WriteStep[],
  options: {
    readonly beforeStep?: ((step: WriteStep, tree: HostTree) => void | Promise<void>) | undefined;
    readonly signal?: AbortSignal;
  } = {},
): Promise<void> {
  await using tree = new HostTree(roots);
  for (const step of steps) {
    options.signal?.throwIfAborted();
    await options.beforeStep?.(step, tree);
    await takeStep(tree, step);
  }
}

async function takeStep(tree: HostTree, step: WriteStep): Promise<void> {
  const directory = isRemoval(step) ? await parentLeft(tree, step.name) : await tree.parentOf(step.name);
  if (directory === undefined) return;
  await takeStepIn(directory, step, tree.roots);
  await directory.sync();
}

/** Below what is no directory any more is nothing to remove. */
async function parentLeft(tree: HostTree, name: string): Promise<HostDirectory | undefined> {
  return tree.directory(path.posix.dirname(name)).catch((error: unknown) => {
    if (!(error instanceof PathError)) throw error;
    return undefined;
  });
}

async function takeStepIn(directory: HostDirectory, step: WriteStep, roots: TreeRoots): Promise<void> {
  const base = path.posix.basename(step.name);
  switch (step.kind) {
    case 'file':
      return directory.replaceFile(base, (handle) => handle.writeFile(step.contents), step);
    case 'copy':
      return copy(directory, base, step);
    case 'directory':
      if (step.replaces === true) await removeOther(directory, base);
      return directory.makeDirectory(base, step, step.isParent === true ? 'leave' : 'adjust');
    case 'symlink':
      return directory.replaceLink(base, step.target, step);
    case 'hard link': {
      await using sources = new HostTree(roots);
      const source = await sources.parentOf(step.source);
      await directory.replaceHardLink(base, source, path.posix.basename(step.source));
      return;
    }
    case 'restore':
      return directory.copyFrom(base, step.source);
    case 'remove':
      return removeOther(directory, base);
    case 'remove directory':
      return directory.removeDirectory(base).catch((error: unknown) => {
        const isLeft = hasCode(error, 'ENOTEMPTY', 'EEXIST') && step.evenIfNotEmpty === 'leave';
        if (!isLeft && !hasCode(error, 'ENOENT', 'ENOTDIR')) throw error;
      });
  }
}

/** A directory that is there by now was made by a later step, before all of them were taken again. */
async function removeOther(directory: HostDirectory, base: string): Promise<void> {
  if ((await directory.stat(base))?.isDirectory() === false) await directory.remove(base);
}

async function copy(
  directory: HostDirectory,
  base: string,
  step: Extract<WriteStep, { kind: 'copy' }>,
): Promise<void> {
  await using source = await open(step.source, constants.O_RDONLY | constants.O_NOFOLLOW);
  await directory.replaceWithCopy(base, source, {
    attributes: step,
    verify: (handle) => requireContent(handle, step),
  });
}

async function requireContent(
  handle: FileHandle,
  { source, sha256 }: Extract<WriteStep, { kind: 'copy' }>,
): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ autoClose: false, start: 0 })) hash.update(chunk);
  const digest = hash.digest('hex');
  if (digest !== sha256) {
    throw new Error(`${source}: expected sha256:${sha256}, found sha256:${digest}`);
  }
}
