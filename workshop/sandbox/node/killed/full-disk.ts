import { closeSync, openSync, writeSync } from 'node:fs';

/** What fills a node's disk, in the node's directory. */
export const FILLER = 'filler';

/** Writes to a file until the disk is full to its last block. */
export function fillDisk(file: string): void {
  const filler = openSync(file, 'w');
  try {
    for (let size = 4 * 1024 * 1024; size >= 4096; size /= 2) writeUntilFull(filler, Buffer.alloc(size));
  } finally {
    closeSync(filler);
  }
}

function writeUntilFull(file: number, block: Buffer): void {
  try {
    for (;;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
