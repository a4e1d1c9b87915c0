import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Digest, digestOf, finish, parseDigest } from '../digest.ts';
import { manifestKey, type Reference } from '../reference.ts';
import { ContentError, RegistryError } from './registry-error.ts';
import { createTransport, type RegistryAccess, type RegistryRequest } from './transport.ts';

/** A manifest as it came: what is hashed is what was read, never what was written again. */
export interface RawManifest {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

type Repository = Pick<Reference, 'registry' | 'repository'>;

/** Bytes of a piece of a large blob: few requests, and little memory. */
const PIECE_BYTES = 16 * 1024 * 1024;
/** Manifests are read whole; registries refuse larger ones (distribution-spec, "Pushing Manifests"). */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

/** The specification says 404; registries from before it answer what they have for a path they don't know. */
const NO_REFERRERS_API = [400, 404, 405, 406];
const TORN_LINK_ATTEMPTS = 4;
const TORN_LINK_MS = 100;

/** Of one list: a registry whose pages never end must not hold a build. */
const MAX_PAGES = 100;

const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST_TYPES = [
  'application/vnd.oci.image.manifest.v1+json',
  OCI_INDEX,
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/** A client of registries (distribution-spec). Everything it reads is checked against its digest and size. */
export interface RegistryClient {
  /** @throws RegistryError; ContentError when the bytes are not those that the digest names. */
  getManifest(reference: Reference, signal: AbortSignal): Promise<RawManifest>;
  /** @returns the digest that the manifest is stored under. */
  putManifest(
    reference: Reference,
    manifest: Pick<RawManifest, 'mediaType' | 'bytes'>,
    signal: AbortSignal,
  ): Promise<Digest>;
  /**
   * Pushes a manifest that has a subject (distribution-spec, "Pushing Manifests with Subject").
   *
   * @returns its digest, and whether the registry lists it among its subject's referrers by itself.
   */
  putReferrer(
    at: Repository,
    manifest: Pick<RawManifest, 'mediaType' | 'bytes'>,
    signal: AbortSignal,
  ): Promise<{ readonly digest: Digest; readonly listed: boolean }>;
  /**
   * Asks for what refers to a manifest (distribution-spec, "Listing Referrers").
   *
   * @returns the pages of the list, each an image index; undefined from a registry without that API.
   */
  getReferrers(at: Repository, subject: Digest, signal: AbortSignal): Promise<Uint8Array[] | undefined>;
  /** @returns false when it was gone already. */
  deleteManifest(at: Repository, digest: Digest, signal: AbortSignal): Promise<boolean>;
  hasBlob(at: Repository, digest: Digest, signal: AbortSignal): Promise<boolean>;
  /** The blob's bytes as they come; the last chunk is given only when size and digest are right. */
  readBlob(at: Repository, blob: Descriptor, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Uploads in one piece. @returns whether it had to be sent: a blob that is there already is not. */
  putBlob(
    at: Repository,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<{ readonly digest: Digest; readonly sent: boolean }>;
  /**
   * Uploads a blob as it comes, piece by piece (distribution-spec, "Pushing a blob in chunks"): memory stays the same
   * whatever its size. What was sent before a failure is begun anew by the caller.
   *
   * @throws RegistryError; what the bytes throw, and then the registry keeps nothing.
   */
  putBlobStream(
    at: Repository,
    digest: Digest,
    bytes: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Makes a blob of another repository of the same registry available here. @returns false where the registry will not. */
  mountBlob(at: Repository, digest: Digest, from: string, signal: AbortSignal): Promise<boolean>;
}

/** @returns a client that reaches registries as it is told. */
export function createRegistryClient(access: RegistryAccess): RegistryClient {
  const transport = createTransport(access);
  const send = (
    { registry, repository }: Repository,
    request: Omit<RegistryRequest, 'registry' | 'repository'>,
  ) => transport.send({ registry, repository, ...request });

  async function beginUpload(at: Repository, signal: AbortSignal): Promise<string> {
    const response = await send(at, {
      method: 'POST',
      path: 'blobs/uploads/',
      accept: [202],
      scope: 'pull,push',
      signal,
    });
    response.resume();
    return uploadLocation(at, response.headers.location);
  }

  /** distribution-spec, "Mounting a blob from another repository". @returns where to upload it; undefined once it is there. */
  async function mountOrBegin(
    at: Repository,
    digest: Digest,
    from: string,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const response = await send(at, {
      method: 'POST',
      path: `blobs/uploads/?mount=${encodeURIComponent(digest)}&from=${encodeURIComponent(from)}`,
      accept: [201, 202],
      scope: 'pull,push',
      signal,
    });
    response.resume();
    return response.statusCode === 201 ? undefined : uploadLocation(at, response.headers.location);
  }

  /** distribution-spec has no such request, and most registries do; those that don't forget the upload after a while. */
  async function cancelUpload(at: Repository, location: string, signal: AbortSignal): Promise<void> {
    const response = await send(at, {
      method: 'DELETE',
      path: location,
      accept: [200, 202, 204, 400, 404, 405],
      scope: 'pull,push',
      signal,
    });
    response.resume();
  }

  /** @returns where the next piece goes. */
  async function sendPiece(
    at: Repository,
    location: string,
    { offset, bytes }: { readonly offset: number; readonly bytes: Uint8Array },
    signal: AbortSignal,
  ): Promise<string> {
    const response = await send(at, {
      method: 'PATCH',
      path: location,
      headers: {
        'content-type': 'application/octet-stream',
        'content-range': `${offset}-${offset + bytes.length - 1}`,
      },
      body: bytes,
      accept: [202],
      scope: 'pull,push',
      signal,
    });
    response.resume();
    return uploadLocation(at, response.headers.location);
  }

  async function upload(
    at: Repository,
    location: string,
    bytes: Uint8Array,
    digest: Digest,
    signal: AbortSignal,
  ): Promise<void> {
    const base = `${access.plainHttp?.has(at.registry) === true ? 'http' : 'https'}://${at.registry}`;
    const url = new URL(location, base);
    url.searchParams.set('digest', digest);
    const response = await send(at, {
      method: 'PUT',
      path: url.href,
      headers: { 'content-type': 'application/octet-stream' },
      body: bytes,
      accept: [201],
      scope: 'pull,push',
      signal,
    });
    response.resume();
  }

  /** @param name tag or digest. */
  async function sendManifest(
    at: Repository,
    name: string,
    { mediaType, bytes }: Pick<RawManifest, 'mediaType' | 'bytes'>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await send(at, {
          method: 'PUT',
          path: `manifests/${name}`,
          headers: { 'content-type': mediaType },
          body: bytes,
          accept: [201],
          scope: 'pull,push',
          signal,
        });
        response.resume();
        return response;
      } catch (error) {
        if (!isTornLink(error) || attempt === TORN_LINK_ATTEMPTS) throw error;
        await delay(attempt * TORN_LINK_MS, undefined, { signal });
      }
    }
  }

  const client: RegistryClient = {
    async getManifest(reference, signal) {
      const key = manifestKey(reference);
      const response = await send(reference, {
        method: 'GET',
        path: `manifests/${key}`,
        headers: { accept: MANIFEST_TYPES },
        accept: [200],
        scope: 'pull',
        signal,
      });
      const bytes = await readAll(response, MAX_MANIFEST_BYTES, `manifest ${key}`);
      const digest = digestOf(bytes);
      const expected = reference.digest ?? headerDigest(response.headers['docker-content-digest']);
      if (expected !== undefined && expected !== digest) {
        throw new ContentError(
          `${reference.registry}/${reference.repository}: manifest ${expected} has the digest ${digest}`,
        );
      }
      return {
        digest,
        bytes,
        mediaType: (response.headers['content-type'] ?? '').split(';')[0]?.trim() ?? '',
      };
    },
    async putManifest(reference, manifest, signal) {
      const digest = digestOf(manifest.bytes);
      await sendManifest(reference, reference.tag ?? digest, manifest, signal);
      return digest;
    },
    async putReferrer(at, manifest, signal) {
      const digest = digestOf(manifest.bytes);
      const response = await sendManifest(at, digest, manifest, signal);
      return { digest, listed: response.headers['oci-subject'] !== undefined };
    },
    async getReferrers(at, subject, signal) {
      const pages: Uint8Array[] = [];
      let path: string | undefined = `referrers/${subject}`;
      while (path !== undefined) {
        if (pages.length === MAX_PAGES) {
          throw new ContentError(
            `${at.registry}/${at.repository}: more than ${MAX_PAGES} pages of referrers`,
          );
        }
        const response = await send(at, {
          method: 'GET',
          path,
          headers: { accept: OCI_INDEX },
          accept: pages.length === 0 ? [200, ...NO_REFERRERS_API] : [200],
          scope: 'pull',
          signal,
        });
        // A registry behind a web page may answer whatever it is asked with that page.
        if (response.statusCode !== 200 || !String(response.headers['content-type']).startsWith(OCI_INDEX)) {
          response.resume();
          return undefined;
        }
        pages.push(await readAll(response, MAX_MANIFEST_BYTES, `referrers of ${subject}`));
        path = nextPage(at, response.headers.link);
      }
      return pages;
    },
    async deleteManifest(at, digest, signal) {
      const response = await send(at, {
        method: 'DELETE',
        path: `manifests/${digest}`,
        accept: [200, 202, 404],
        scope: 'delete',
        signal,
      });
      response.resume();
      return response.statusCode !== 404;
    },
    async hasBlob(at, digest, signal) {
      const response = await send(at, {
        method: 'HEAD',
        path: `blobs/${digest}`,
        accept: [200, 404],
        scope: 'pull',
        signal,
      });
      response.resume();
      return response.statusCode === 200;
    },
    async *readBlob(at, blob, signal) {
      const response = await send(at, {
        method: 'GET',
        path: `blobs/${blob.digest}`,
        accept: [200],
        scope: 'pull',
        signal,
      });
      yield* verified(response as AsyncIterable<Buffer>, blob);
    },
    async putBlob(at, bytes, signal) {
      const digest = digestOf(bytes);
      // A mount from the repository itself asks whether the blob is there and begins an upload where it is not, in one.
      const location = await mountOrBegin(at, digest, at.repository, signal);
      if (location !== undefined) await upload(at, location, bytes, digest, signal);
      return { digest, sent: location !== undefined };
    },
    async putBlobStream(at, digest, bytes, signal) {
      let location = await beginUpload(at, signal);
      let offset = 0;
      for await (const piece of inPieces(bytes, PIECE_BYTES)) {
        location = await sendPiece(at, location, { offset, bytes: piece }, signal);
        offset += piece.length;
      }
      await upload(at, location, new Uint8Array(), digest, signal);
    },
    async mountBlob(at, digest, from, signal) {
      const location = await mountOrBegin(at, digest, from, signal);
      if (location === undefined) return true;
      // A registry that will not mount has begun an upload, which nobody goes on with.
      await cancelUpload(at, location, signal);
      return false;
    },
  };
  return client;
}

/**
 * docker-registry keeps which blobs a repository has in files that it does not write whole: while another client pushes a
 * blob that a manifest names, the file may be read empty, and the manifest is refused for a digest that is right.
 */
function isTornLink(error: unknown): boolean {
  return error instanceof RegistryError && error.status === 400 && error.code === 'DIGEST_INVALID';
}

/** RFC 8288, as distribution-spec uses it. A page lies on the registry itself: credentials go nowhere else. */
function nextPage(at: Repository, link: string | string[] | undefined): string | undefined {
  const target = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(String(link ?? ''))?.[1];
  if (target === undefined) return undefined;
  const { pathname, search } = new URL(target, `https://${at.registry}/v2/${at.repository}/referrers/`);
  return `${pathname}${search}`;
}

function headerDigest(header: string | string[] | undefined): Digest | undefined {
  return typeof header === 'string' && header !== '' ? parseDigest(header) : undefined;
}

/** Joins what comes into pieces of one size; the last may be smaller. */
async function* inPieces(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    held.push(chunk);
    length += chunk.length;
    if (length < size) continue;
    yield Buffer.concat(held);
    held = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(held);
}

function uploadLocation(at: Repository, location: string | undefined): string {
  if (location === undefined)
    throw new ContentError(
      `${at.registry}/${at.repository}: the registry began an upload and did not say where`,
    );
  return location;
}

async function readAll(stream: AsyncIterable<unknown>, limit: number, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += (chunk as Buffer).length;
    if (length > limit) throw new ContentError(`${what}: more than ${limit} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** Holds each chunk back until the next has come, so that a wrong end is known before the last one is given. */
async function* verified(
  stream: AsyncIterable<Buffer>,
  { digest, size }: Descriptor,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let length = 0;
  let held: Buffer | undefined;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > size) throw new ContentError(`blob ${digest}: more than its ${size} bytes`);
    hash.update(chunk);
    if (held !== undefined) yield held;
    held = chunk;
  }
  if (length !== size) throw new ContentError(`blob ${digest}: ${length} bytes in place of ${size}`);
  const found = finish(hash);
  if (found !== digest) throw new ContentError(`blob ${digest}: what came has the digest ${found}`);
  if (held !== undefined) yield held;
}
