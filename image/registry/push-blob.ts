import type { IncomingMessage } from 'node:http';
import type { Digest } from '../digest.ts';
import type { Reference } from '../reference.ts';
import { dropBytes, inPieces, type Piece } from './pieces.ts';
import { ContentError, RegistryError, withLaterFailure } from './registry-error.ts';
import { pauseOrThrow } from './retry.ts';
import type { RegistryRequest } from './transport.ts';

type Repository = Pick<Reference, 'registry' | 'repository'>;

/** Sends a request about a repository. */
export type Send = (
  at: Repository,
  request: Omit<RegistryRequest, 'registry' | 'repository'>,
) => Promise<IncomingMessage>;

/** An upload that a registry has begun (distribution-spec, "Pushing Blobs"). */
export interface Upload {
  /** Where its next request goes; a secret of its own. */
  readonly location: string;
  /** The smallest piece that the registry takes, but for the last one; bytes. */
  readonly minPiece: number;
}

export interface StreamedBlob {
  readonly digest: Digest;
  readonly size: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Bytes of a piece of a large blob: few requests, and little memory. */
const PIECE_BYTES = 16 * 1024 * 1024;
/** A registry that wants larger pieces gets the blob as one stream: a piece is held in memory until it is there. */
const LARGEST_PIECE_BYTES = 64 * 1024 * 1024;
/** What registries answer that know no pieces. */
const NO_PIECES = [404, 405, 415, 501];
/** For telling a registry that an upload has ended; nobody waits for more than that. */
const CANCEL_MS = 5_000;

/** @throws RegistryError */
export async function beginUpload(send: Send, at: Repository, signal: AbortSignal): Promise<Upload> {
  const response = await send(at, {
    method: 'POST',
    path: 'blobs/uploads/',
    accept: [202],
    scope: 'pull,push',
    signal,
  });
  response.resume();
  return uploadOf(at, response);
}

/** distribution-spec, "Mounting a blob from another repository". @returns where to upload it; undefined once it is there. */
export async function mountOrBegin(
  send: Send,
  at: Repository,
  { digest, from }: { readonly digest: Digest; readonly from: string },
  signal: AbortSignal,
): Promise<Upload | undefined> {
  const response = await send(at, {
    method: 'POST',
    path: `blobs/uploads/?mount=${encodeURIComponent(digest)}&from=${encodeURIComponent(from)}`,
    accept: [201, 202],
    scope: 'pull,push',
    signal,
  });
  response.resume();
  return response.statusCode === 201 ? undefined : uploadOf(at, response);
}

/**
 * distribution-spec has no such request, and most registries do; those that don't forget the upload after a while. So it is
 * never an error.
 */
export async function cancelUpload(send: Send, at: Repository, { location }: Upload): Promise<void> {
  const request = { method: 'DELETE', path: location, scope: 'pull,push', attempts: 1 } as const;
  const accept = [200, 202, 204];
  await send(at, { ...request, accept, signal: AbortSignal.timeout(CANCEL_MS) }).then(
    (response) => response.resume(),
    () => undefined,
  );
}

/**
 * Uploads a blob in one request, or ends an upload whose pieces are all there.
 *
 * @param body all of its bytes, or none.
 * @throws RegistryError
 */
export async function putWhole(
  send: Send,
  at: Repository,
  upload: Upload,
  blob: { readonly digest: Digest; readonly body: RegistryRequest['body'] },
  signal: AbortSignal,
): Promise<void> {
  const separator = upload.location.includes('?') ? '&' : '?';
  try {
    const response = await send(at, {
      method: 'PUT',
      path: `${upload.location}${separator}digest=${encodeURIComponent(blob.digest)}`,
      headers: { 'content-type': 'application/octet-stream' },
      body: blob.body ?? new Uint8Array(),
      accept: [201, 204],
      scope: 'pull,push',
      signal,
    });
    response.resume();
  } catch (error) {
    // An answer that got lost: sent again, the upload is no longer known, because the blob is there.
    if (!(error instanceof RegistryError) || (error.status !== 404 && !error.temporary)) throw error;
    const isStored = await hasBlob(send, at, blob.digest, signal).catch((later: unknown) => {
      throw withLaterFailure(error, later);
    });
    if (!isStored) throw error;
  }
}

/** @throws RegistryError */
export async function hasBlob(
  send: Send,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<boolean> {
  const request = { method: 'HEAD', path: `blobs/${digest}`, scope: 'pull' } as const;
  const response = await send(at, { ...request, accept: [200, 404], signal });
  response.resume();
  return response.statusCode === 200;
}

/**
 * Uploads a blob as it comes, piece by piece; a piece that breaks is gone on with from where the registry has it. A blob of
 * one piece is one request, and so is any blob for a registry that knows no pieces.
 *
 * @throws RegistryError; ContentError when another number of bytes comes; what the bytes throw. Then the registry keeps
 *   nothing.
 */
export async function pushStream(
  send: Send,
  at: Repository,
  blob: StreamedBlob,
  signal: AbortSignal,
): Promise<void> {
  const progress: Progress = { upload: await beginUpload(send, at, signal) };
  const { minPiece } = progress.upload;
  const pieceBytes = Math.min(Math.max(PIECE_BYTES, minPiece), LARGEST_PIECE_BYTES);
  const pieces = inPieces(blob.bytes, pieceBytes, blob);
  try {
    await sendAll(send, at, { ...blob, pieces }, progress, signal);
    await pieces.return();
  } catch (error) {
    await cancelUpload(send, at, progress.upload);
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
  send: Send,
  at: Repository,
  { digest, size, pieces }: Omit<StreamedBlob, 'bytes'> & { readonly pieces: AsyncIterator<Piece> },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { minPiece } = progress.upload;
  const first = await pieces.next();
  const piece = first.done === true ? [] : first.value;
  if (size <= lengthOf(piece)) {
    await putWhole(send, at, progress.upload, { digest, body: piece }, signal);
    return;
  }
  const next =
    minPiece <= LARGEST_PIECE_BYTES ? await sendFirst(send, at, progress.upload, piece, signal) : undefined;
  if (next === undefined) {
    await cancelUpload(send, at, progress.upload);
    progress.upload = await beginUpload(send, at, signal);
    const body = { length: size, bytes: joined(piece, pieces, progress) };
    await putWhole(send, at, progress.upload, { digest, body }, signal);
    return;
  }
  progress.upload = next;
  let offset = lengthOf(piece);
  // Not for await: what closing the pieces throws would be lost beside what sending one throws.
  for (let more = await pieces.next(); more.done !== true; more = await pieces.next()) {
    progress.upload = await sendPiece(send, at, progress.upload, { offset, piece: more.value }, signal);
    offset += lengthOf(more.value);
  }
  await putWhole(send, at, progress.upload, { digest, body: [] }, signal);
}

/** @returns undefined from a registry that takes no pieces. */
async function sendFirst(
  send: Send,
  at: Repository,
  upload: Upload,
  piece: Piece,
  signal: AbortSignal,
): Promise<Upload | undefined> {
  try {
    return await sendPiece(send, at, upload, { offset: 0, piece }, signal);
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
  send: Send,
  at: Repository,
  upload: Upload,
  { offset, piece }: { readonly offset: number; readonly piece: Piece },
  signal: AbortSignal,
): Promise<Upload> {
  const end = offset + lengthOf(piece);
  let current = upload;
  let begin = offset;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await patch(send, at, current, { begin, piece: dropBytes(piece, begin - offset) }, signal);
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      await pauseOrThrow(attempt, error.status === 416 ? outOfStep(error) : error, signal);
      const there = await uploadStatus(send, at, current, signal).catch((later: unknown) => {
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
  send: Send,
  at: Repository,
  { location, minPiece }: Upload,
  { begin, piece }: { readonly begin: number; readonly piece: Piece },
  signal: AbortSignal,
): Promise<Upload> {
  const response = await send(at, {
    method: 'PATCH',
    path: location,
    headers: {
      'content-type': 'application/octet-stream',
      'content-range': `${begin}-${begin + lengthOf(piece) - 1}`,
    },
    body: piece,
    accept: [202, 204],
    scope: 'pull,push',
    // Sent blindly a second time it would be refused where the first one arrived.
    attempts: 1,
    signal,
  });
  response.resume();
  return { ...uploadOf(at, response), minPiece };
}

/** distribution-spec, "Pushing a blob in chunks": how much of it the registry has. */
async function uploadStatus(
  send: Send,
  at: Repository,
  upload: Upload,
  signal: AbortSignal,
): Promise<{ readonly upload: Upload; readonly received: number }> {
  const request = { method: 'GET', path: upload.location, scope: 'pull,push' } as const;
  const response = await send(at, { ...request, accept: [200, 202, 204], signal });
  response.resume();
  const last = /^(?:bytes=)?0-(\d+)$/.exec(String(response.headers['range'] ?? ''))?.[1];
  // An upload without a byte has the range 0-0 too; one of a single byte is none that is sent.
  const received = last === undefined || last === '0' ? 0 : Number(last) + 1;
  const location = response.headers.location ?? upload.location;
  return { upload: { ...upload, location }, received };
}

function uploadOf(at: Repository, { headers }: IncomingMessage): Upload {
  if (headers.location === undefined) {
    throw new ContentError(
      `${at.registry}/${at.repository}: the registry began an upload and did not say where`,
    );
  }
  const minimum = Number(headers['oci-chunk-min-length'] ?? 0);
  return { location: headers.location, minPiece: Number.isSafeInteger(minimum) ? minimum : 0 };
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
