import {
  chmod,
  chown,
  lchown,
  link,
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
import { execa } from 'execa';
import { temporaryName } from './merge-etc.ts';
import { ignoreMissing, isMissing } from './tree-entry.ts';

export interface DirectoryAttributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** One step of a write. Each is atomic for those who read the tree. */
export type WriteStep = { readonly name: string; readonly place: string } & (
  | ({ readonly kind: 'file'; readonly contents: Uint8Array } & DirectoryAttributes)
  | ({ readonly kind: 'directory' } & DirectoryAttributes)
  | { readonly kind: 'symlink'; readonly target: string; readonly uid: number; readonly gid: number }
  /** `source` is the place of what the inode is shared with. */
  | { readonly kind: 'hard link'; readonly source: string }
  /** `source` is the place of what comes back. */
  | { readonly kind: 'restore'; readonly source: string }
  | { readonly kind: 'remove' }
  /** A directory that nobody asked for by itself goes only when it is empty: what is in it may be the admin's. */
  | { readonly kind: 'remove directory'; readonly evenIfNotEmpty: 'leave' | 'fail' }
);

/** Writes durably. No file is changed in place: files of an ostree checkout are hard links into the repository. */
export async function writeDurably(step: WriteStep): Promise<void> {
  switch (step.kind) {
    case 'file':
      await replace(step.place, (temporary) => writeNew(temporary, step));
      break;
    case 'directory':
      await makeDirectory(step.place, step);
      break;
    case 'symlink':
      await replace(step.place, async (temporary) => {
        await symlink(step.target, temporary);
        await lchown(temporary, step.uid, step.gid);
      });
      break;
    case 'hard link':
      await replace(step.place, (temporary) => link(step.source, temporary));
      break;
    case 'restore':
      await replace(step.place, (temporary) => copyEntry(step.source, temporary));
      break;
    case 'remove':
      await unlink(step.place);
      break;
    case 'remove directory':
      await removeDirectory(step.place, step.evenIfNotEmpty);
      break;
  }
  await syncDirectory(path.dirname(step.place));
}

/** Copies a file or link with owner, mode, times and extended attributes (SELinux's label), durably (cp(1)). */
export async function copyEntry(from: string, to: string): Promise<void> {
  await execa('cp', [
    '--archive',
    '--reflink=auto',
    '--remove-destination',
    '--no-target-directory',
    '--',
    from,
    to,
  ]);
  if ((await lstat(to)).isFile()) await sync(to);
  await syncDirectory(path.dirname(to));
}

/** @returns where a step has its new file before it is renamed; a killed step leaves it behind. */
export function temporaryAt(place: string): string {
  return path.join(path.dirname(place), temporaryName(path.basename(place)));
}

/** Makes a directory's entries durable (fsync(2)); one that is not there has none. */
export async function syncDirectory(directory: string): Promise<void> {
  await sync(directory).catch(ignoreMissing);
}

async function writeNew(
  place: string,
  { contents, uid, gid, mode }: Extract<WriteStep, { kind: 'file' }>,
): Promise<void> {
  const handle = await open(place, 'wx', 0o600);
  try {
    await handle.writeFile(contents);
    // chown(2) clears setuid and setgid, so the mode comes after.
    await handle.chown(uid, gid);
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function makeDirectory(place: string, { mode, uid, gid }: DirectoryAttributes): Promise<void> {
  const stats = await lstat(place).catch(ignoreMissing);
  if (stats === undefined) await mkdir(place, { mode: 0o700 });
  await chown(place, uid, gid);
  await chmod(place, mode);
}

async function removeDirectory(place: string, evenIfNotEmpty: 'leave' | 'fail'): Promise<void> {
  await rmdir(place).catch((error: unknown) => {
    const isFull = error instanceof Error && 'code' in error && error.code === 'ENOTEMPTY';
    if (isMissing(error) || (isFull && evenIfNotEmpty === 'leave')) return;
    throw error;
  });
}

async function replace(place: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = temporaryAt(place);
  await rm(temporary, { force: true });
  try {
    await make(temporary);
    await rename(temporary, place);
  } finally {
    // rename(2) does nothing when both are hard links to the same file.
    await rm(temporary, { force: true });
  }
}

async function sync(place: string): Promise<void> {
  const handle = await open(place);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
