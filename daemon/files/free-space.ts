import { statfs } from 'node:fs/promises';

/** @returns bytes that a directory's file system has left for programs without privileges (statfs(2), f_bavail). */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** @returns bytes in MiB, rounded up, for a message. */
export function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2)} MiB`;
}
