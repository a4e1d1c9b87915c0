import { createReadStream } from 'node:fs';
import type { BuildSecret } from './build-context.ts';

/** Values shorter than this are found in any file by chance. */
const SHORTEST = 8;

/**
 * @param file uncompressed layer.
 * @returns the id of a secret whose value stands in it; undefined where none does. A value that was encoded or cut is not
 *   found: this catches a copy, not an intent.
 */
export async function findSecret(file: string, secrets: readonly BuildSecret[]): Promise<string | undefined> {
  const sought = secrets
    .map(({ id, value }) => ({ id, value: trimmed(value) }))
    .filter(({ value }) => value.length >= SHORTEST);
  if (sought.length === 0) return undefined;
  const longest = Math.max(...sought.map(({ value }) => value.length));
  let window: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file)) {
    // A value may begin in one chunk and end in the next.
    window = Buffer.concat([window.subarray(-(longest - 1)), chunk as Buffer]);
    const found = sought.find(({ value }) => window.includes(value));
    if (found !== undefined) return found.id;
  }
  return undefined;
}

/** Without the line feed at its end, which a copy may lack. */
function trimmed(value: Uint8Array): Buffer {
  return Buffer.from(Buffer.from(value).toString('latin1').trim(), 'latin1');
}
