import path from 'node:path';
import type { HostDirectory } from './host-directory.ts';
import { hasCode } from './host-file-error.ts';
import { HostTree } from './host-tree.ts';

export interface PutFile {
  readonly contents: Uint8Array;
  readonly mode: number;
}

/**
 * Writes a file of root's, whole or not at all and durably, with the directories that are missing above it.
 *
 * @param name absolute, as the host knows it. @throws {HostFileError}
 */
export async function putFile(root: string, name: string, { contents, mode }: PutFile): Promise<void> {
  await using tree = new HostTree({ root });
  const location = await tree.locate(name);
  for (const parent of location.missingParents) {
    const above = await tree.parentOf(parent);
    await above.makeDirectory(path.posix.basename(parent), { mode: 0o755, uid: 0, gid: 0 }, 'leave');
  }
  const directory = await tree.parentOf(location.name);
  await directory.replaceFile(path.posix.basename(location.name), (handle) => handle.writeFile(contents), {
    mode,
    uid: 0,
    gid: 0,
  });
  await directory.sync();
}

/**
 * Removes a file durably; its directory goes with its last file. Nothing there: nothing done. @throws {HostFileError}
 */
export async function removeFile(root: string, name: string): Promise<void> {
  await using tree = new HostTree({ root });
  const location = await tree.locate(name);
  if (location.missingParents.length > 0) return;
  const directory = await tree.parentOf(location.name);
  const base = path.posix.basename(location.name);
  if ((await directory.stat(base)) !== undefined) await directory.remove(base);
  await directory.sync();
  const parent = await tree.parentOf(directory.name);
  await removeIfEmpty(parent, path.posix.basename(directory.name));
}

/** Removes a directory, unless something is in it. @returns whether it is gone. @throws {HostFileError} */
export async function removeIfEmpty(parent: HostDirectory, base: string): Promise<boolean> {
  try {
    await parent.removeDirectory(base);
    return true;
  } catch (error) {
    if (!hasCode(error, 'ENOTEMPTY')) throw error;
    return false;
  }
}
