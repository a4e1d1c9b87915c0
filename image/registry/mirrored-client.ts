import type { Digest } from '../../api/references.ts';
import type { Registries } from '../../oci/registries-conf.ts';
import { bareRepository, formatReference, type Reference, type Repository } from '../reference.ts';
import type { RegistryAccess } from './connection.ts';
import { isInsecure, type OpenSource, type PullSource, pullSources } from './pull-sources.ts';
import { createRegistryClient, type RegistryClient } from './registry-client.ts';
import { ContentError, DigestMismatch, RegistryError } from './registry-error.ts';

interface MirrorOptions {
  readonly conf: Registries;
  /**
   * The repository that is pushed to. What is read of it is what stands there, never a mirror's copy: a list that is
   * read to be written again must be the list itself.
   */
  readonly own?: Repository | undefined;
}

/** Tags that stand for a digest: lists of referrers, signatures (distribution-spec, "Referrers Tag Schema"; cosign). */
const DIGEST_TAG = /^sha256-([a-f0-9]{64})/;

/**
 * A client that reads as registries.conf configures, from mirrors, other locations or not at all, and writes to the
 * reference itself.
 *
 * Its methods also throw a TypeError where registries.conf rewrites a name to an invalid one.
 */
export function createMirroredClient(access: RegistryAccess, { conf, own }: MirrorOptions): RegistryClient {
  const secure = createRegistryClient(access);
  const insecure = new Map<string, RegistryClient>();
  const insecureFor = (registry: string) => {
    const client =
      insecure.get(registry) ?? createRegistryClient({ ...access, insecure: new Set([registry]) });
    insecure.set(registry, client);
    return client;
  };
  const clientFor = (source: Pick<OpenSource, 'reference' | 'insecure'>) =>
    source.insecure ? insecureFor(source.reference.registry) : secure;
  const writer = (at: Repository) =>
    clientFor({ reference: bareRepository(at), insecure: isInsecure(bareRepository(at), conf) });
  /** Where the last manifest of a repository was found: what it names is there, whatever mirror is for tags alone. */
  const lastSources = new Map<string, OpenSource>();

  function sourcesOf(reference: Reference): readonly PullSource[] {
    if (
      own !== undefined &&
      formatReference(bareRepository(own)) === formatReference(bareRepository(reference))
    ) {
      return [{ kind: 'open', reference, insecure: isInsecure(reference, conf) }];
    }
    const sources = pullSources(reference, conf);
    const first = reference.digest && lastSources.get(formatReference(bareRepository(reference)));
    return first === undefined
      ? sources
      : [first, ...sources.filter((source) => !isSamePlace(source, first))];
  }

  const read = <T>(
    reference: Reference,
    signal: AbortSignal,
    ask: (client: RegistryClient, at: Repository, source: OpenSource) => Promise<T>,
  ): Promise<T> =>
    trySources(
      lastIfMisread(sourcesOf(reference), reference.digest),
      (source) => ask(clientFor(source), bareRepository(source.reference), source),
      signal,
    );

  return {
    getManifest(reference, signal) {
      const { registry: _, repository: __, ...name } = reference;
      return read({ ...digestOfTag(name.tag), ...reference }, signal, async (client, at, source) => {
        const manifest = await client.getManifest({ ...at, ...name }, signal);
        lastSources.set(formatReference(bareRepository(reference)), source);
        return manifest;
      });
    },
    getReferrers: (at, digest, signal) =>
      read({ ...bareRepository(at), digest }, signal, (client, there) =>
        client.getReferrers(there, digest, signal),
      ),
    hasBlob: (at, digest, signal) =>
      read({ ...bareRepository(at), digest }, signal, (client, there) =>
        client.hasBlob(there, digest, signal),
      ),
    async *readBlob(at, blob, signal) {
      yield* await read({ ...bareRepository(at), digest: blob.digest }, signal, (client, there) =>
        begun(noted(client.readBlob(there, blob, signal), misreadKey(there, blob.digest))),
      );
    },
    putManifest: (reference, manifest, signal) => writer(reference).putManifest(reference, manifest, signal),
    putReferrer: (at, manifest, signal) => writer(at).putReferrer(at, manifest, signal),
    listTags: (at, signal) => writer(at).listTags(at, signal),
    deleteManifest: (at, digest, signal) => writer(at).deleteManifest(at, digest, signal),
    putBlob: (at, bytes, signal) => writer(at).putBlob(at, bytes, signal),
    putBlobStream: (at, blob, bytes, signal) => writer(at).putBlobStream(at, blob, bytes, signal),
    mountBlob: (at, digest, from, signal) => writer(at).mountBlob(at, digest, from, signal),
  };
}

function digestOfTag(tag: string | undefined): { readonly digest?: Digest } {
  const hex = DIGEST_TAG.exec(tag ?? '')?.[1];
  return hex === undefined ? {} : { digest: `sha256:${hex}` as Digest };
}

function isSamePlace(source: PullSource, other: OpenSource): boolean {
  return (
    source.kind === 'open' &&
    formatReference(bareRepository(source.reference)) === formatReference(bareRepository(other.reference))
  );
}

/**
 * Places whose answer for a blob was wrong, and showed it only after its first bytes had been given. Then it is too
 * late to ask another place: the next attempt does, which has a client of its own. So the process remembers it.
 */
const misread = new Set<string>();
const MOST_MISREAD = 1_000;

function misreadKey(at: Repository, digest: Digest): string {
  return formatReference({ ...bareRepository(at), digest });
}

/** Notes the place if its bytes are wrong. */
async function* noted(bytes: AsyncIterable<Uint8Array>, key: string): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    if (error instanceof DigestMismatch) {
      if (misread.size >= MOST_MISREAD) misread.clear();
      misread.add(key);
    }
    throw error;
  }
}

/** @returns the places, those last that gave wrong bytes under this digest: one of them may still be the only one. */
function lastIfMisread(sources: readonly PullSource[], digest: Digest | undefined): readonly PullSource[] {
  const isMisread = (source: PullSource) =>
    digest !== undefined && source.kind === 'open' && misread.has(misreadKey(source.reference, digest));
  return [...sources.filter((source) => !isMisread(source)), ...sources.filter(isMisread)];
}

/** Reads until the first chunk, because a source without the blob fails before that. */
async function begun(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const iterator = bytes[Symbol.asyncIterator]();
  const first = await iterator.next();
  return (async function* rest() {
    try {
      for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  })();
}

interface Failure {
  readonly kind: PullSource['kind'];
  readonly at: Reference;
  readonly error: RegistryError | ContentError;
}

/**
 * Asks places one after the other until one answers. A place that can't be reached, doesn't have the image, refuses, or
 * has something else under its digest is skipped.
 *
 * @returns the first answer.
 * @throws the error of the last place that could be asked, which is the image's own registry where it is not blocked;
 *   its message lists the errors of the others, and it is temporary when one of them may come back. What is no
 *   registry's error is thrown as it is.
 */
async function trySources<T>(
  sources: readonly PullSource[],
  ask: (source: OpenSource) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const failures: Failure[] = [];
  for (const source of sources) {
    if (source.kind === 'blocked') {
      failures.push({ kind: source.kind, at: source.reference, error: blocked(source.reference, source.by) });
      continue;
    }
    try {
      return await ask(source);
    } catch (error) {
      if (signal.aborted || !(error instanceof RegistryError || error instanceof ContentError)) throw error;
      failures.push({ kind: source.kind, at: source.reference, error });
    }
  }
  throw allFailed(failures);
}

function blocked(reference: Reference, by: string): RegistryError {
  return new RegistryError(`${formatReference(reference)}: registries.conf blocks ${by}`, {
    code: 'DENIED',
    status: 403,
  });
}

function allFailed(failures: readonly Failure[]): RegistryError | ContentError {
  // What is not at the mirrors of a blocked registry is not there, rather than forbidden.
  const last = failures.findLast(({ kind }) => kind === 'open') ?? failures.at(-1);
  if (last === undefined) return new RegistryError('no source to pull the image from', { status: 0 });
  const others = failures.filter((failure) => failure !== last);
  if (others.length === 0) return last.error;
  const reasons = others.map(({ at, error }) => `[${formatReference(at)}: ${error.message}]`);
  const message = `${last.error.message}; nor was it elsewhere: ${reasons.join(', ')}`;
  const isAway = failures.some(({ error }) => error instanceof RegistryError && error.temporary);
  if (last.error instanceof ContentError) {
    // Where another place may come back, the wrong content here is not the last word.
    if (isAway) return new RegistryError(message, { status: 0, temporary: true }, { cause: last.error });
    const isMismatch = failures.some(({ error }) => error instanceof DigestMismatch);
    return new (isMismatch ? DigestMismatch : ContentError)(message, { cause: last.error });
  }
  const { code, status, retryAfterMs } = last.error;
  // A mirror whose content does not match the digest is also asked again: it has the image, and one response was
  // corrupt.
  const temporary = isAway || others.some(({ error }) => error instanceof DigestMismatch);
  return new RegistryError(message, { code, status, retryAfterMs, temporary }, { cause: last.error });
}
