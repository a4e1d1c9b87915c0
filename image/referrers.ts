import { z } from 'zod';
import type { Digest } from '../api/references.ts';
import { type Artifact, digestTag, pushArtifact, pushEmptyConfig, type Referrer } from './artifact.ts';
import type { Descriptor } from './digest.ts';
import { type Index, parseManifest } from './manifest.ts';
import { bareRepository, formatReference, type Reference, type Repository } from './reference.ts';
import { OCI_INDEX } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { ContentError, RegistryError } from './registry/registry-error.ts';

/** Times a list is written again because another writer's took its place; with more something else is wrong. */
const WRITES = 8;
/** What cosign and its kin put beside an image, by tag. */
const SIDE_TAGS = ['.sig', '.att', '.sbom'];

/** What others wrote on a list is for show: odd values must not keep an image from being looked at or deleted. */
const Named = z.object({
  artifactType: z.string().catch(''),
  annotations: z.record(z.string(), z.string()).catch({}),
});

/**
 * Pushes artifacts about an image and makes them findable from it: by the registry's referrers API where it has one,
 * else by a list under a tag (distribution-spec, "Referrers Tag Schema"). Doing it again changes nothing.
 *
 * @param subject the image's manifest or index.
 * @throws RegistryError; ContentError where the list's tag holds something else, or other writers never stop.
 */
export async function attachArtifacts(
  client: RegistryClient,
  at: Repository,
  given: { readonly subject: Descriptor; readonly artifacts: readonly Artifact[] },
  signal: AbortSignal,
): Promise<Referrer[]> {
  const { subject, artifacts } = given;
  await pushEmptyConfig(client, at, signal);
  const pushed: Awaited<ReturnType<typeof pushArtifact>>[] = [];
  for (const artifact of artifacts)
    pushed.push(await pushArtifact(client, at, { subject, artifact }, signal));
  const unlisted = pushed.filter(({ listed }) => !listed).map(({ referrer }) => referrer);
  const list: Reference = { ...bareRepository(at), tag: digestTag(subject.digest) };
  if (unlisted.length > 0)
    await inLine(formatReference(list), () => addToList(client, list, unlisted, signal));
  return pushed.map(({ referrer }) => referrer);
}

/**
 * Lists what refers to an image.
 *
 * @returns an empty list for an image that nothing refers to, and for one that is not there.
 * @throws RegistryError, ContentError
 */
export async function listReferrers(
  client: RegistryClient,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<Referrer[]> {
  const pages = await client.getReferrers(at, digest, signal);
  const indexes =
    pages === undefined
      ? [(await readList(client, { ...bareRepository(at), tag: digestTag(digest) }, signal))?.index]
      : pages.map((bytes) =>
          indexOf(bytes, `referrers of ${formatReference({ ...bareRepository(at), digest })}`),
        );
  const referrers = new Map<Digest, Referrer>();
  for (const entry of indexes.flatMap((index) => index?.manifests ?? [])) {
    const { mediaType, digest: of, size } = entry;
    const { artifactType, annotations } = Named.parse(entry);
    referrers.set(of, { mediaType, digest: of, size, artifactType, annotations });
  }
  return [...referrers.values()];
}

/**
 * Deletes an image and everything that says something of it: referrers, their list, signatures. The image goes last: as
 * long as it is there, another try finds the rest.
 *
 * @returns false when the image was gone already.
 * @throws RegistryError, ContentError
 */
export async function deleteWithReferrers(
  client: RegistryClient,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<boolean> {
  const referrers = await listReferrers(client, at, digest, signal);
  for (const referrer of referrers) await client.deleteManifest(at, referrer.digest, signal);
  for (const suffix of ['', ...SIDE_TAGS]) {
    const manifest = await manifestAt(
      client,
      { ...bareRepository(at), tag: `${digestTag(digest)}${suffix}` },
      signal,
    );
    if (manifest !== undefined) await client.deleteManifest(at, manifest.digest, signal);
  }
  return client.deleteManifest(at, digest, signal);
}

/** @returns undefined where there is no such manifest. @throws RegistryError for any other trouble. */
export async function manifestAt(client: RegistryClient, reference: Reference, signal: AbortSignal) {
  try {
    return await client.getManifest(reference, signal);
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return undefined;
    throw error;
  }
}

/**
 * Registries don't write a tag on condition of what it was. So the list is read again after it was written: a writer
 * that another overtook sees its own entries missing and adds them to what the other wrote.
 */
async function addToList(
  client: RegistryClient,
  list: Reference,
  referrers: readonly Referrer[],
  signal: AbortSignal,
): Promise<void> {
  for (let writes = 0; ; writes += 1) {
    const index = (await readList(client, list, signal))?.index;
    const there = new Set(index?.manifests.map(({ digest }) => digest));
    const missing = referrers.filter(({ digest }) => !there.has(digest));
    if (missing.length === 0) return;
    if (writes === WRITES) {
      throw new ContentError(
        `${formatReference(list)}: other clients replaced the list of referrers after each of ${WRITES} writes`,
      );
    }
    const merged = {
      schemaVersion: 2,
      mediaType: OCI_INDEX,
      ...index,
      manifests: [...(index?.manifests ?? []), ...missing],
    };
    await client.putManifest(
      list,
      { mediaType: OCI_INDEX, bytes: Buffer.from(JSON.stringify(merged)) },
      signal,
    );
  }
}

async function readList(client: RegistryClient, list: Reference, signal: AbortSignal) {
  const raw = await manifestAt(client, list, signal);
  return raw && { digest: raw.digest, index: indexOf(raw.bytes, formatReference(list)) };
}

function indexOf(bytes: Uint8Array, where: string): Index {
  const parsed = parseManifest(bytes, where);
  if (parsed.kind === 'index') return parsed.index;
  throw new ContentError(`${where}: found an image, expected a list of referrers; the image was not changed`);
}

const lines = new Map<string, Promise<unknown>>();

/** One after the other for the same key: writers of this process never overtake one another. */
async function inLine<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = lines.get(key);
  const mine = (before ?? Promise.resolve()).then(work, work);
  lines.set(key, mine);
  try {
    return await mine;
  } finally {
    if (lines.get(key) === mine) lines.delete(key);
  }
}
