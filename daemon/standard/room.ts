import { lstat, statfs } from 'node:fs/promises';
import { ignoreMissing } from '../tree/tree-entry.ts';
import type { WriteStep } from '../tree/write-step.ts';

/** The disk has too little room for a write and for taking it back. Nothing was written. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/** Left to the host, and for the records of the write itself. */
const RESERVE_BYTES = 1024 * 1024;
/** Each file takes whole blocks, and its name a place in a directory. */
const BYTES_PER_STEP = 8192;

/**
 * @param steps of the write. @param directories whose file systems it writes to: the tree's and that of the backups.
 * @throws NoRoomError when what comes and the backups of what goes might not fit.
 */
export async function requireRoom(
  steps: readonly WriteStep[],
  directories: readonly string[],
): Promise<void> {
  let needed = RESERVE_BYTES;
  for (const step of steps) {
    const replaced = await lstat(step.place).catch(ignoreMissing);
    const restored = step.kind === 'restore' ? await lstat(step.source).catch(ignoreMissing) : undefined;
    const coming = step.kind === 'file' ? step.contents.byteLength : (restored?.size ?? 0);
    // What is replaced is backed up, perhaps kept as an original, and there still while the new comes.
    needed += BYTES_PER_STEP + coming + 2 * (replaced?.isFile() === true ? replaced.size : 0);
  }
  for (const directory of new Set(directories)) {
    const { bavail, bsize, blocks } = await statfs(directory);
    // A file system without a size has no limit that it could tell (statfs(2), tmpfs).
    if (blocks === 0 || bavail * bsize >= needed) continue;
    throw new NoRoomError(
      `${directory}: ${kibibytes(needed)} are needed to write the config and to be able to take it back, ${kibibytes(bavail * bsize)} are free`,
    );
  }
}

function kibibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`;
}
