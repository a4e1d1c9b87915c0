import type { Digest } from '../../api/references.ts';
import type { Repository } from '../reference.ts';
import { ContentError, type Pause, pauseOrThrow, RegistryError, withLaterFailure } from './registry-error.ts';
import { beginUpload, cancelUpload, putWhole, type Send, type Upload, uploadOf } from './upload.ts';

interface StreamedBlob {
  readonly digest: Digest;
  readonly size: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Where a blob goes. */
interface Target {
  readonly send: Send;
  readonly at: Repository;
  /** How to wait after a piece broke. */
  readonly pause: Pause;
}

/** Bytes of a piece of a large blob: few requests, and little memory. */
const PIECE_BYTES = 16 * 1024 * 1024;
/** A registry that wants larger pieces gets the blob as one stream: a piece is held in memory until it is there. */
const LARGEST_PIECE_BYTES = 64 * 1024 * 1024;
/** What registries answer that know no pieces. */
const NO_PIECES = [404, 405, 415, 501];
/**
 * Uploads a blob as it comes, piece by piece; a piece that breaks is resumed from what the registry has received. A
 * blob of one piece is one request, and so is any blob for a registry that knows no pieces.
 *
 * @throws RegistryError; ContentError when another number of bytes comes; what the bytes throw. Then the registry keeps
 *   nothing.
 */
export async function pushStream(to: Target, blob: StreamedBlob, signal: AbortSignal): Promise<void> {
  const progress: Progress = { upload: await beginUpload(to.send, to.at, signal) };
  const { minPiece } = progress.upload;
  const pieceBytes = Math.min(Math.max(PIECE_BYTES, minPiece), LARGEST_PIECE_BYTES);
  const pieces = inPieces(blob.bytes, pieceBytes, blob);
  try {
    await sendAll(to, { ...blob, pieces }, progress, signal);
    await pieces.return();
  } catch (error) {
    await cancelUpload(to.send, to.at, progress.upload);
    const first = progress.sourceError ?? error;
    await pieces.return().catch((later: unknown) => {
      throw withLaterFailure(first, later);
    });
    throw first;
  }
}

/** How far the upload of a blob has come. */
interface Progress {
  upload: Upload;
  /** What the bytes threw while they were the body of a request, which fails in other words then. */
  sourceError?: unknown;
}

async function sendAll(
  to: Target,
  { digest, size, pieces }: Omit<StreamedBlob, 'bytes'> & { readonly pieces: AsyncIterator<Piece> },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { minPiece } = progress.upload;
  const first = await pieces.next();
  const piece = first.done === true ? [] : first.value;
  if (size <= lengthOf(piece)) {
    await putWhole(to.send, to.at, progress.upload, { digest, body: piece }, signal);
    return;
  }
  const next =
    minPiece <= LARGEST_PIECE_BYTES ? await sendFirst(to, progress.upload, piece, signal) : undefined;
  if (next === undefined) {
    await cancelUpload(to.send, to.at, progress.upload);
    progress.upload = await beginUpload(to.send, to.at, signal);
    const body = { length: size, bytes: joined(piece, pieces, progress) };
    await putWhole(to.send, to.at, progress.upload, { digest, body }, signal);
    return;
  }
  progress.upload = next;
  let offset = lengthOf(piece);
  // Not for await: what closing the pieces throws would be lost beside what sending one throws.
  for (let more = await pieces.next(); more.done !== true; more = await pieces.next()) {
    progress.upload = await sendPiece(to, progress.upload, { offset, piece: more.value }, signal);
    offset += lengthOf(more.value);
  }
  await putWhole(to.send, to.at, progress.upload, { digest, body: [] }, signal);
}

/** @returns undefined from a registry that takes no pieces. */
async function sendFirst(
  to: Target,
  upload: Upload,
  piece: Piece,
  signal: AbortSignal,
): Promise<Upload | undefined> {
  try {
    return await sendPiece(to, upload, { offset: 0, piece }, signal);
  } catch (error) {
    const unknown =
      error instanceof RegistryError && (NO_PIECES.includes(error.status) || error.code === 'UNSUPPORTED');
    if (unknown) return undefined;
    throw error;
  }
}

/**
 * Sends a piece; after a failure the registry is asked how much of it is there.
 *
 * @returns where the next piece goes.
 */
async function sendPiece(
  to: Target,
  upload: Upload,
  { offset, piece }: { readonly offset: number; readonly piece: Piece },
  signal: AbortSignal,
): Promise<Upload> {
  const end = offset + lengthOf(piece);
  let current = upload;
  let begin = offset;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await patch(to, current, { begin, piece: dropBytes(piece, begin - offset) }, signal);
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      await pauseOrThrow(attempt, error.status === 416 ? outOfStep(error) : error, {
        signal,
        pause: to.pause,
      });
      const there = await uploadStatus(to, current, signal).catch((later: unknown) => {
        throw withLaterFailure(error, later);
      });
      if (there.received < offset || there.received > end) throw error;
      current = there.upload;
      begin = there.received;
      if (begin === end) return current;
    }
  }
}

/** The registry has another part of the blob than was thought: it says which. */
function outOfStep(error: RegistryError): RegistryError {
  const { status, code } = error;
  return new RegistryError(error.message, { status, code, temporary: true }, { cause: error });
}

async function patch(
  to: Target,
  { location, minPiece }: Upload,
  { begin, piece }: { readonly begin: number; readonly piece: Piece },
  signal: AbortSignal,
): Promise<Upload> {
  const response = await to.send(to.at, {
    method: 'PATCH',
    path: location,
    headers: {
      'content-type': 'application/octet-stream',
      'content-range': `${begin}-${begin + lengthOf(piece) - 1}`,
    },
    body: piece,
    accept: [201, 202, 204],
    scope: 'pull,push',
    // Sent blindly a second time it would be refused where the first one arrived.
    attempts: 1,
    signal,
  });
  response.resume();
  return { ...uploadOf(to.at, response), minPiece };
}

/** distribution-spec, "Pushing a blob in chunks": how much of it the registry has. */
async function uploadStatus(
  to: Target,
  upload: Upload,
  signal: AbortSignal,
): Promise<{ readonly upload: Upload; readonly received: number }> {
  const request = { method: 'GET', path: upload.location, scope: 'pull,push' } as const;
  const response = await to.send(to.at, { ...request, accept: [200, 202, 204], signal });
  response.resume();
  const last = /^(?:bytes=)?0-(\d+)$/.exec(String(response.headers['range'] ?? ''))?.[1];
  // An empty upload also has the range 0-0; uploads of a single byte are never sent.
  const received = last === undefined || last === '0' ? 0 : Number(last) + 1;
  const location = response.headers.location ?? upload.location;
  return { upload: { ...upload, location }, received };
}

function lengthOf(piece: Piece): number {
  return piece.reduce((sum, { length }) => sum + length, 0);
}

/** @param progress where it is noted what the pieces throw. */
async function* joined(
  first: Piece,
  rest: AsyncIterator<Piece>,
  progress: Progress,
): AsyncGenerator<Uint8Array> {
  yield* first;
  for (;;) {
    const next = await rest.next().catch((error: unknown) => {
      progress.sourceError = error;
      throw error;
    });
    if (next.done === true) return;
    yield* next.value;
  }
}

/** A part of a blob, in the chunks that it came in. */
type Piece = readonly Uint8Array[];

/**
 * Joins what comes into pieces of at least one size; the last may be smaller.
 *
 * @param blob whose bytes they are.
 * @throws ContentError when another number of bytes comes than the blob has.
 */
async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  atLeast: number,
  { digest, size }: { readonly digest: Digest; readonly size: number },
): AsyncGenerator<Piece, void, void> {
  let held: Uint8Array[] = [];
  let length = 0;
  let total = 0;
  for await (const chunk of bytes) {
    total += chunk.length;
    if (total > size)
      throw new ContentError(`blob ${digest}: the source has more than the expected ${size} bytes`);
    held.push(chunk);
    length += chunk.length;
    if (length < atLeast) continue;
    yield held;
    held = [];
    length = 0;
  }
  if (total !== size)
    throw new ContentError(`blob ${digest}: the source has ${total} bytes, expected ${size}`);
  if (length > 0) yield held;
}

/** @returns the piece without its first bytes. */
function dropBytes(piece: Piece, count: number): Piece {
  let left = count;
  return piece.flatMap((chunk) => {
    const rest = chunk.subarray(left);
    left -= chunk.length - rest.length;
    return rest.length === 0 ? [] : [rest];
  });
}
