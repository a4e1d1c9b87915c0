import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { onTestFinished } from 'vitest';

/** Why tests can't have a disk of their own on this machine; nothing when they can. */
export const noMounts: string | undefined = process.getuid?.() === 0 ? undefined : 'mounting needs root';

/** @returns a file system of its own, of so many bytes; it goes when the test has finished. */
export async function smallDisk(bytes: number): Promise<string> {
  const disk = await mkdtemp(path.join(tmpdir(), 'shale-disk-'));
  await execa('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', disk]);
  onTestFinished(async () => {
    await execa('umount', ['--recursive', disk]);
    await rm(disk, { recursive: true });
  });
  return disk;
}

/**
 * Fills a disk.
 *
 * @param blocks how many are left free.
 * @returns what empties it again.
 */
export async function fill(disk: string, blocks = 0): Promise<() => Promise<void>> {
  const file = path.join(disk, 'filler');
  const handle = await open(file, 'w');
  try {
    const { bavail, bsize } = await statfs(disk);
    for (let left = bavail; left > blocks; left -= 1) await handle.write(Buffer.alloc(bsize));
    // Other programs' blocks are not counted at once.
    if (blocks === 0) for (;;) await handle.write(Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    await handle.close();
  }
  return () => rm(file);
}
