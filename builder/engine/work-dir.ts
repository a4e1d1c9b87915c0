import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Of each directory that an engine's image is unpacked to. */
export const WORK_PREFIX = 'shale-engine-';

/**
 * Deletes what an earlier process has unpacked and was killed before it deleted: a volume of a pod outlives its
 * containers, and each image that is left in it takes from the next one's place. In the machine's own directory for
 * temporary files nothing is deleted: another builder may be using it.
 *
 * @throws the file system's errors.
 */
export async function removeLeftovers(workDir: string): Promise<void> {
  if (path.resolve(workDir) === path.resolve(tmpdir())) return;
  for (const name of await readdir(workDir))
    if (name.startsWith(WORK_PREFIX)) await rm(path.join(workDir, name), { recursive: true, force: true });
}
