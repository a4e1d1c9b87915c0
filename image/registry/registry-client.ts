import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { type Digest, isDigest } from '../../api/references.ts';
import { type Descriptor, digestOf } from '../digest.ts';
import { manifestKey, type Reference, type Repository } from '../reference.ts';
import { type RegistryAccess, SILENCE_MS } from './connection.ts';
import { MANIFEST_TYPES, manifestType, OCI_INDEX } from './manifest-type.ts';
import { pushStream } from './push-blob.ts';
import { readBlob, readWhole } from './read-blob.ts';
import {
  ContentError,
  DigestMismatch,
  type Pause,
  pauseByTimer,
  RegistryError,
  TagTaken,
  withLaterFailure,
} from './registry-error.ts';
import { createTransport } from './transport.ts';
import { beginUpload, cancelUpload, hasBlob, mountOrBegin, putWhole, type Send } from './upload.ts';

/** A manifest as it came: what is hashed is what was read, never what was written again. */
interface RawManifest {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Manifests are read whole; registries refuse larger ones (distribution-spec, "Pushing Manifests"). */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

/** The specification says 404; registries from before it answer what they have for a path they don't know. */
const NO_REFERRERS_API = [400, 404, 405, 406];
/**
 * The specification has a registry begin an upload where it will not mount; some refuse the request, even for the
 * repository itself, or the other repository is not to be read with these credentials. The blob may still be sent.
 */
const NO_MOUNTS = [401, 403, 404, 405];
/** Of a registry that doesn't move tags; of some, also for the manifest that a tag names already. */
const TAG_REFUSED = [400, 403, 405, 409, 412, 422];
/** What is about the content, whatever its tag (distribution-spec, "Error Codes"). */
const CONTENT_REFUSED = ['MANIFEST_BLOB_UNKNOWN', 'BLOB_UNKNOWN', 'DIGEST_INVALID', 'MANIFEST_INVALID'];
const TORN_LINK_ATTEMPTS = 4;
const TORN_LINK_MS = 100;

/** distribution-spec, "Pushing Manifests". */
const CREATED = 201;
/**
 * Quay and others accept a manifest with another success (202). So may a proxy before a registry, which has done
 * nothing; what is there then shows it.
 */
const OTHER_SUCCESSES = [200, 202];

/** Of one list: a registry whose pages never end must not hold a build. */
const MAX_PAGES = 100;

/**
 * A client of registries (distribution-spec). Everything it reads is checked against its digest and size. Its methods
 * are its own properties, so that another client is this one, spread, with a method of its own.
 */
export interface RegistryClient {
  /** @throws RegistryError; ContentError when the bytes are not those that the digest names. */
  getManifest(reference: Reference, signal: AbortSignal): Promise<RawManifest>;
  /**
   * Pushes a manifest under its tag, or under its digest alone. A refused one that the tag names already is pushed.
   *
   * @returns the digest that the manifest is stored under.
   * @throws TagTaken where the tag names another manifest and the registry doesn't move it; RegistryError, ContentError
   */
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
  /**
   * @returns the tags of a repository in the order of their code units; none for a repository that doesn't exist
   * (distribution-spec, "Listing Tags").
   */
  listTags(at: Repository, signal: AbortSignal): Promise<string[]>;
  /** @returns false when it was gone already. */
  deleteManifest(at: Repository, digest: Digest, signal: AbortSignal): Promise<boolean>;
  hasBlob(at: Repository, digest: Digest, signal: AbortSignal): Promise<boolean>;
  /**
   * The blob's bytes as they come; the last chunk is given only when size and digest are right. Where the connection
   * breaks, it goes on from there.
   */
  readBlob(at: Repository, blob: Descriptor, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Uploads in one piece. @returns whether it had to be sent: a blob that is there already is not. */
  putBlob(
    at: Repository,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<{ readonly digest: Digest; readonly sent: boolean }>;
  /**
   * Uploads a blob as it comes, piece by piece (distribution-spec, "Pushing a blob in chunks"): memory stays the same
   * whatever its size. A broken upload is resumed; the bytes are read once.
   *
   * @throws RegistryError; ContentError when another number of bytes comes; what the bytes throw. Then the registry
   *   keeps nothing.
   */
  putBlobStream(
    at: Repository,
    blob: Pick<Descriptor, 'digest' | 'size'>,
    bytes: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Makes a blob of another repository of the same registry available here. @returns false where the registry will not.
   */
  mountBlob(at: Repository, digest: Digest, from: string, signal: AbortSignal): Promise<boolean>;
}

/** @param access how to reach registries. @returns a client of them. */
export function createRegistryClient(access: RegistryAccess): RegistryClient {
  return new HttpRegistryClient(access);
}

class HttpRegistryClient implements RegistryClient {
  readonly #send: Send;
  readonly #silenceMs: number;
  readonly #pause: Pause;

  constructor(access: RegistryAccess) {
    const transport = createTransport(access);
    this.#send = ({ registry, repository }, request) => transport.send({ registry, repository, ...request });
    this.#silenceMs = access.silenceMs ?? SILENCE_MS;
    this.#pause = access.pause ?? pauseByTimer;
  }

  readonly getManifest: RegistryClient['getManifest'] = async (reference, signal) => {
    const key = manifestKey(reference);
    const ask = () =>
      this.#send(reference, {
        method: 'GET',
        path: `manifests/${key}`,
        headers: { accept: MANIFEST_TYPES.join(', ') },
        accept: [200],
        scope: 'pull',
        signal,
      });
    const about = { what: `manifest ${key}`, limit: MAX_MANIFEST_BYTES, pause: this.#pause };
    const { response, bytes } = await readWhole(ask, about, signal);
    const digest = digestOf(bytes);
    const expected = reference.digest ?? headerDigest(response.headers['docker-content-digest']);
    if (expected !== undefined && expected !== digest) {
      throw new DigestMismatch(
        `${reference.registry}/${reference.repository}: expected manifest ${expected}, received content with the digest ${digest}`,
      );
    }
    return {
      digest,
      bytes,
      mediaType: manifestType(response.headers['content-type'], bytes),
    };
  };

  readonly putManifest: RegistryClient['putManifest'] = async (reference, manifest, signal) => {
    const digest = digestOf(manifest.bytes);
    const name = reference.tag ?? digest;
    try {
      await this.#sendManifest(reference, name, manifest, signal);
    } catch (error) {
      if (!isAboutTag(error)) throw error;
      const { registry, repository, tag } = reference;
      const named = { registry, repository, ...(tag === undefined ? { digest } : { tag }) };
      const there = await this.#digestAt(named, signal).catch((later: unknown) => {
        throw withLaterFailure(error, later);
      });
      if (there === undefined) throw error;
      if (there !== digest) throw tagTaken(name, there, error);
    }
    return digest;
  };

  /** @returns what a tag or digest names; undefined for nothing. */
  async #digestAt(reference: Reference, signal: AbortSignal): Promise<Digest | undefined> {
    try {
      return (await this.getManifest(reference, signal)).digest;
    } catch (error) {
      if (hasStatus(error, [404])) return undefined;
      throw error;
    }
  }

  readonly putReferrer: RegistryClient['putReferrer'] = async (at, manifest, signal) => {
    const digest = digestOf(manifest.bytes);
    const response = await this.#sendManifest(at, digest, manifest, signal);
    return { digest, listed: response.headers['oci-subject'] !== undefined };
  };

  readonly getReferrers: RegistryClient['getReferrers'] = async (at, subject, signal) => {
    const pages: Uint8Array[] = [];
    let path: string | undefined = `referrers/${subject}`;
    while (path !== undefined) {
      if (pages.length === MAX_PAGES) {
        throw new ContentError(`${at.registry}/${at.repository}: more than ${MAX_PAGES} pages of referrers`);
      }
      const page: string = path;
      const ask = () =>
        this.#send(at, {
          method: 'GET',
          path: page,
          headers: { accept: OCI_INDEX },
          accept: pages.length === 0 ? [200, ...NO_REFERRERS_API] : [200],
          scope: 'pull',
          signal,
        });
      const about = { what: `referrers of ${subject}`, limit: MAX_MANIFEST_BYTES, pause: this.#pause };
      const { response, bytes } = await readWhole(ask, about, signal);
      // A registry behind a web page may answer whatever it is asked with that page.
      if (response.statusCode !== 200 || !String(response.headers['content-type']).startsWith(OCI_INDEX)) {
        return undefined;
      }
      pages.push(bytes);
      path = nextPage(at, page, response.headers.link);
    }
    return pages;
  };

  readonly listTags: RegistryClient['listTags'] = async (at, signal) => {
    const tags: string[] = [];
    let path: string | undefined = 'tags/list';
    for (let pages = 0; path !== undefined; pages += 1) {
      const where = `${at.registry}/${at.repository}`;
      if (pages === MAX_PAGES) throw new ContentError(`${where}: more than ${MAX_PAGES} pages of tags`);
      const page: string = path;
      const ask = () =>
        this.#send(at, { method: 'GET', path: page, accept: [200, 404], scope: 'pull', signal });
      const about = { what: 'tags', limit: MAX_MANIFEST_BYTES, pause: this.#pause };
      const { response, bytes } = await readWhole(ask, about, signal);
      if (response.statusCode === 404) break;
      tags.push(...tagsOf(bytes, where));
      path = nextPage(at, page, response.headers.link);
    }
    return tags.toSorted();
  };

  readonly deleteManifest: RegistryClient['deleteManifest'] = async (at, digest, signal) => {
    const response = await this.#send(at, {
      method: 'DELETE',
      path: `manifests/${digest}`,
      accept: [200, 202, 404],
      scope: 'delete',
      signal,
    });
    response.resume();
    return response.statusCode !== 404;
  };

  readonly hasBlob: RegistryClient['hasBlob'] = (at, digest, signal) => {
    return hasBlob(this.#send, at, digest, signal);
  };

  readonly readBlob: RegistryClient['readBlob'] = (at, blob, signal) => {
    const open = (offset: number) =>
      this.#send(at, {
        method: 'GET',
        path: `blobs/${blob.digest}`,
        headers: offset === 0 ? {} : { range: `bytes=${offset}-` },
        accept: offset === 0 ? [200] : [200, 206],
        scope: 'pull',
        signal,
      });
    return readBlob({ open, blob, silenceMs: this.#silenceMs, pause: this.#pause, signal });
  };

  readonly putBlob: RegistryClient['putBlob'] = async (at, bytes, signal) => {
    const digest = digestOf(bytes);
    // A mount from the repository itself asks whether the blob is there and begins an upload where it is not, in one.
    const mount = { digest, from: at.repository };
    const upload = await mountOrBegin(this.#send, at, mount, signal).catch(async (error: unknown) => {
      if (!hasStatus(error, NO_MOUNTS)) throw error;
      const isThere = await hasBlob(this.#send, at, digest, signal).catch(() => false);
      return isThere ? undefined : beginUpload(this.#send, at, signal);
    });
    if (upload !== undefined) await putWhole(this.#send, at, upload, { digest, body: bytes }, signal);
    return { digest, sent: upload !== undefined };
  };

  readonly putBlobStream: RegistryClient['putBlobStream'] = (at, { digest, size }, bytes, signal) => {
    const to = { send: this.#send, at, pause: this.#pause };
    return pushStream(to, { digest, size, bytes }, signal);
  };

  readonly mountBlob: RegistryClient['mountBlob'] = async (at, digest, from, signal) => {
    try {
      const upload = await mountOrBegin(this.#send, at, { digest, from }, signal);
      // A registry that will not mount has started an upload, which nobody continues.
      if (upload !== undefined) await cancelUpload(this.#send, at, upload);
      return upload === undefined;
    } catch (error) {
      if (hasStatus(error, NO_MOUNTS)) return false;
      throw error;
    }
  };

  /** @param name tag or digest. */
  async #sendManifest(
    at: Repository,
    name: string,
    { mediaType, bytes }: Pick<RawManifest, 'mediaType' | 'bytes'>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#send(at, {
          method: 'PUT',
          path: `manifests/${name}`,
          headers: { 'content-type': mediaType },
          body: bytes,
          accept: [CREATED, ...OTHER_SUCCESSES],
          scope: 'pull,push',
          signal,
        });
        response.resume();
        const { statusCode: status = CREATED } = response;
        if (status !== CREATED) await this.#requireManifest(at, name, { status, bytes }, signal);
        return response;
      } catch (error) {
        if (!isTornLink(error) || attempt === TORN_LINK_ATTEMPTS) throw error;
        await this.#pause(attempt * TORN_LINK_MS, signal);
      }
    }
  }

  /** @throws RegistryError where the registry doesn't have the manifest that it took with this status. */
  async #requireManifest(
    { registry, repository }: Repository,
    name: string,
    { status, bytes }: { readonly status: number; readonly bytes: Uint8Array },
    signal: AbortSignal,
  ): Promise<void> {
    const there = await this.#digestAt(
      { registry, repository, ...(isDigest(name) ? { digest: name } : { tag: name }) },
      signal,
    );
    if (there === digestOf(bytes)) return;
    const why = `HTTP ${status}, and the registry does not have the manifest then`;
    throw new RegistryError(`PUT ${registry}/${repository} manifests/${name}: ${why}`, { status });
  }
}

/** A registry of a repository without tags may answer null. */
const TagList = z.object({ tags: z.array(z.string()).nullable() });

function tagsOf(bytes: Uint8Array, where: string): readonly string[] {
  try {
    return TagList.parse(JSON.parse(Buffer.from(bytes).toString('utf8'))).tags ?? [];
  } catch (cause) {
    throw new ContentError(`${where}: the registry's answer is no list of tags`, { cause });
  }
}

function isAboutTag(error: unknown): error is RegistryError {
  return hasStatus(error, TAG_REFUSED) && !CONTENT_REFUSED.includes((error as RegistryError).code);
}

function tagTaken(tag: string, there: Digest, refused: RegistryError): TagTaken {
  const { code, status } = refused;
  const message = `${refused.message}; ${tag} names ${there} already, and the registry does not move it`;
  return new TagTaken(message, { code, status }, { cause: refused });
}

function hasStatus(error: unknown, statuses: readonly number[]): boolean {
  return error instanceof RegistryError && statuses.includes(error.status);
}

/**
 * docker-registry keeps which blobs a repository has in files that it does not write whole: while another client pushes
 * a blob that a manifest names, the file may be read empty, and the manifest is refused for a digest that is right.
 */
function isTornLink(error: unknown): boolean {
  return error instanceof RegistryError && error.status === 400 && error.code === 'DIGEST_INVALID';
}

/**
 * RFC 8288, as distribution-spec uses it: a link is relative to the page that it comes with. A page lies on the
 * registry itself: credentials go nowhere else.
 */
function nextPage(at: Repository, page: string, link: string | string[] | undefined): string | undefined {
  const target = /<([^<>]*)>[^<>]*\brel="?next"?/.exec(String(link ?? ''))?.[1];
  if (target === undefined) return undefined;
  const base = new URL(page, `https://${at.registry}/v2/${at.repository}/`);
  if (!URL.canParse(target, base.href)) {
    throw new ContentError(`${at.registry}/${at.repository}: the link to the next page of a list is no URL`);
  }
  const { pathname, search } = new URL(target, base);
  return `${pathname}${search}`;
}

/** A registry may know a manifest by a digest of another algorithm. By a tag, none is promised at all. */
function headerDigest(header: string | string[] | undefined): Digest | undefined {
  return typeof header === 'string' && isDigest(header) ? header : undefined;
}
