import path from 'node:path';
import type { Attributes } from './host-directory.ts';
import { hasCode } from './host-file-error.ts';
import { HostTree, type TreeRoots } from './host-tree.ts';

/** One step of a write, at a name that `HostTree.locate` found. Each is atomic for those who read the tree. */
export type WriteStep = { readonly name: string } & (
  | ({ readonly kind: 'file'; readonly contents: Uint8Array } & Attributes)
  /** A parent was missing when the write was planned; one that is there by now stays as it is. */
  | ({ readonly kind: 'directory'; readonly isParent?: boolean } & Attributes)
  | { readonly kind: 'symlink'; readonly target: string; readonly uid: number; readonly gid: number }
  /** `source` is the name, without links, of what the inode is shared with. */
  | { readonly kind: 'hard link'; readonly source: string }
  /** `source` is the place of what comes back; only root can write there. */
  | { readonly kind: 'restore'; readonly source: string }
  | { readonly kind: 'remove' }
  /** A directory that nobody asked for by itself goes only when it is empty: what is in it may be the admin's. */
  | { readonly kind: 'remove directory'; readonly evenIfNotEmpty: 'leave' | 'fail' }
);

/**
 * Takes a step durably. No file is changed in place: files of an ostree checkout are hard links into the repository.
 *
 * @throws {PathError} when a directory on the way is none, or a link by now; {HostFileError} for the system's errors.
 */
export async function writeDurably(roots: TreeRoots, step: WriteStep): Promise<void> {
  await using tree = new HostTree(roots);
  await writeIn(tree, step);
}

/** As writeDurably, in a tree whose directories stay open from one step to the next. */
export async function writeIn(tree: HostTree, step: WriteStep): Promise<void> {
  const base = path.posix.basename(step.name);
  const directory = await tree.parentOf(step.name);
  switch (step.kind) {
    case 'file':
      await directory.replaceFile(base, (handle) => handle.writeFile(step.contents), step);
      break;
    case 'directory':
      await directory.makeDirectory(base, step, step.isParent === true ? 'leave' : 'adjust');
      break;
    case 'symlink':
      await directory.replaceLink(base, step.target, step);
      break;
    case 'hard link': {
      await using sources = new HostTree(tree.roots);
      const source = await sources.parentOf(step.source);
      await directory.replaceHardLink(base, source, path.posix.basename(step.source));
      break;
    }
    case 'restore':
      await directory.copyFrom(base, step.source);
      break;
    case 'remove':
      await directory.remove(base);
      break;
    case 'remove directory':
      await directory.removeDirectory(base).catch((error: unknown) => {
        const isLeft = hasCode(error, 'ENOTEMPTY') && step.evenIfNotEmpty === 'leave';
        if (!isLeft && !hasCode(error, 'ENOENT', 'ENOTDIR')) throw error;
      });
      break;
  }
  await directory.sync();
}
