import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { CACHE } from '../../../workshop/sandbox/layout.ts';

/**
 * Makes a disk unless it is there, kept from one run to the next.
 *
 * @param inputs what it is made of: others make another disk. @param make writes the disk `disk.raw` to a directory,
 *   which is gone afterwards with all else in it.
 * @returns the raw disk, which is not to be written to. @throws what `make` throws.
 */
export async function cachedDisk(
  inputs: readonly unknown[],
  make: (directory: string) => Promise<void>,
): Promise<string> {
  const key = createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 12);
  const file = path.join(CACHE, `disk-${key}.raw`);
  if (existsSync(file)) return file;
  const directory = `${file}.${randomUUID()}`;
  await mkdir(directory, { recursive: true });
  try {
    await make(directory);
    await rename(diskIn(directory), file);
    return file;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Makes a raw disk without content. @throws when the file exists. */
export async function createDisk(file: string, bytes: number): Promise<void> {
  const handle = await open(file, 'wx');
  try {
    await handle.truncate(bytes);
  } finally {
    await handle.close();
  }
}

/** @returns where the disk is being made. */
export function diskIn(directory: string): string {
  return path.join(directory, 'disk.raw');
}
