import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { byCodeUnits } from '../../api/order.ts';

/** Bytes; of larger files size and time tell whether they were changed. */
const READ_UP_TO = 4 * 1024 * 1024;

/**
 * What an /etc holds, in one digest: names, types, modes, owners, links and contents. Times are left out, so that a
 * file that is written again with the same content is no change.
 *
 * @param root of the tree.
 * @returns a digest in hex. What vanishes while it is read counts as not there.
 * @throws the file system's errors.
 */
export async function etcDigest(root: string, signal: AbortSignal): Promise<string> {
  const etc = path.join(root, 'etc');
  const names = await readdir(etc, { recursive: true });
  const hash = createHash('sha256');
  for (const name of names.toSorted(byCodeUnits)) {
    signal.throwIfAborted();
    const entry = await entryAt(path.join(etc, name)).catch(vanished);
    if (entry !== undefined) hash.update(JSON.stringify([name, ...entry]));
  }
  return hash.digest('hex');
}

async function entryAt(file: string): Promise<readonly (number | string)[]> {
  const stats = await lstat(file);
  const { mode, uid, gid, size, mtimeMs } = stats;
  if (stats.isSymbolicLink()) return [mode, uid, gid, await readlink(file)];
  if (!stats.isFile()) return [mode, uid, gid];
  return [mode, uid, gid, size, size > READ_UP_TO ? mtimeMs : await contentOf(file)];
}

/** No link is followed that took the file's place meanwhile. */
async function contentOf(file: string): Promise<string> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  return createHash('sha256')
    .update(await handle.readFile())
    .digest('hex');
}

const VANISHED: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

function vanished(error: NodeJS.ErrnoException): undefined {
  if (!VANISHED.has(error.code)) throw error;
  return undefined;
}
