import { statfs } from 'node:fs/promises';
import type { SourceLayer } from './image-source.ts';

/** The host has too little room for an image. Nothing was written. */
export class DiskSpaceError extends Error {
  override readonly name = 'DiskSpaceError';
}

/** Layers of operating systems compress to about 40 %; while one is imported its files exist once more. */
const BYTES_PER_FETCHED_BYTE = 4;
/** Left to the host: logs, and ostree's own reserve for the commit and the bootloader. */
const RESERVE_BYTES = 256 * 1024 * 1024;

/** @returns bytes that importing these layers may need at most, the host's reserve included. */
export function spaceNeeded(layers: readonly Pick<SourceLayer, 'size'>[]): number {
  return layers.reduce((sum, { size }) => sum + size * BYTES_PER_FETCHED_BYTE, RESERVE_BYTES);
}

/** @throws DiskSpaceError when the file system of the directory has less room than this. */
export async function requireSpace(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (free >= bytes) return;
  throw new DiskSpaceError(
    `${directory}: ${megabytes(bytes)} are needed to stage the image, ${megabytes(free)} are free`,
  );
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MiB`;
}
