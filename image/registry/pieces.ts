import type { Digest } from '../digest.ts';
import { ContentError } from './registry-error.ts';

/** A part of a blob, in the chunks that it came in. */
export type Piece = readonly Uint8Array[];

/**
 * Joins what comes into pieces of at least one size; the last may be smaller.
 *
 * @param blob whose bytes they are.
 * @throws ContentError when another number of bytes comes than the blob has.
 */
export async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  atLeast: number,
  { digest, size }: { readonly digest: Digest; readonly size: number },
): AsyncGenerator<Piece, void, void> {
  let held: Uint8Array[] = [];
  let length = 0;
  let total = 0;
  for await (const chunk of bytes) {
    total += chunk.length;
    if (total > size) throw new ContentError(`blob ${digest}: more than its ${size} bytes were to be sent`);
    held.push(chunk);
    length += chunk.length;
    if (length < atLeast) continue;
    yield held;
    held = [];
    length = 0;
  }
  if (total !== size)
    throw new ContentError(`blob ${digest}: ${total} bytes in place of ${size} were to be sent`);
  if (length > 0) yield held;
}

/** @returns the piece without its first bytes. */
export function dropBytes(piece: Piece, count: number): Piece {
  let left = count;
  return piece.flatMap((chunk) => {
    const rest = chunk.subarray(left);
    left -= chunk.length - rest.length;
    return rest.length === 0 ? [] : [rest];
  });
}
