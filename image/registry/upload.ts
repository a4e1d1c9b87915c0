import type { IncomingMessage } from 'node:http';
import type { Digest } from '../../api/references.ts';
import type { Repository } from '../reference.ts';
import { ContentError, RegistryError, withLaterFailure } from './registry-error.ts';
import type { RegistryRequest } from './transport.ts';

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

/** Of the end of an upload: of some registries, and of proxies that have done nothing. */
const OTHER_SUCCESSES = [200, 202];

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

/**
 * distribution-spec, "Mounting a blob from another repository". @returns where to upload it; undefined once it is
 * there.
 */
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
 * distribution-spec has no such request, and most registries do; those that don't forget the upload after a while. So
 * it is never an error.
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
      accept: [201, 204, ...OTHER_SUCCESSES],
      scope: 'pull,push',
      signal,
    });
    response.resume();
    const { statusCode: status = 0 } = response;
    if (!OTHER_SUCCESSES.includes(status)) return;
    const why = `HTTP ${status}, and the registry does not have the blob then`;
    throw new RegistryError(`PUT ${at.registry}/${at.repository}: ${why}`, { status });
  } catch (error) {
    // An answer that got lost, or one that says little: sent again, the upload is no longer known, because the blob is
    // there.
    if (!(error instanceof RegistryError) || (error.status !== 404 && !error.temporary)) throw error;
    const isStored = await hasBlob(send, at, blob.digest, signal).catch((later: unknown) => {
      throw withLaterFailure(error, later);
    });
    if (!isStored) throw error;
  }
}

/** What storage answers to HEAD whose URL is signed for GET alone, and what knows no HEAD. */
const NO_HEAD = [403, 405, 501];

/** @throws RegistryError */
export async function hasBlob(
  send: Send,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<boolean> {
  const request = { path: `blobs/${digest}`, scope: 'pull', signal } as const;
  const response = await send(at, { ...request, method: 'HEAD', accept: [200, 404, ...NO_HEAD] });
  response.resume();
  if (!NO_HEAD.includes(response.statusCode ?? 0)) return response.statusCode === 200;
  // 416: of a blob without a byte.
  const accept = [200, 206, 404, 416];
  const first = await send(at, { ...request, method: 'GET', headers: { range: 'bytes=0-0' }, accept });
  first.destroy();
  return first.statusCode !== 404;
}

/** @returns the upload that an answer speaks of. @throws ContentError where it names no location. */
export function uploadOf(at: Repository, { headers }: IncomingMessage): Upload {
  if (headers.location === undefined) {
    throw new ContentError(
      `${at.registry}/${at.repository}: the registry started an upload without a Location header`,
    );
  }
  const minimum = Number(headers['oci-chunk-min-length'] ?? 0);
  return { location: headers.location, minPiece: Number.isSafeInteger(minimum) ? minimum : 0 };
}
