import type { Digest } from '../api/references.ts';
import { type Descriptor, descriptorOf } from './digest.ts';
import { formatManifest } from './manifest.ts';
import type { Repository } from './reference.ts';
import { OCI_MANIFEST } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';

/** Something that is no image and says something of one: a statement, a list of contents. */
export interface Artifact {
  /** What kind of thing it is, as a media type; by it a reader finds it among an image's referrers. */
  readonly artifactType: string;
  readonly content: Uint8Array;
  /** Further blobs, each of a type of its own; a reader that doesn't know them reads the content alone. */
  readonly more?: readonly { readonly mediaType: string; readonly content: Uint8Array }[];
  /** Of the manifest; a list of referrers shows them. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** An artifact as a list of referrers names it (distribution-spec, "Listing Referrers"). */
export interface Referrer extends Descriptor {
  readonly artifactType: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** OCI image-spec, manifest.md "Guidance for an Empty Descriptor". */
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';
const EMPTY = Buffer.from('{}');

/**
 * The manifest of an artifact (OCI image-spec, manifest.md "Guidelines for Artifact Usage"). Pure: the same artifact of
 * the same subject has the same bytes.
 *
 * @param subject what it is about; undefined for one that stands alone.
 */
export function artifactManifest(subject: Descriptor | undefined, artifact: Artifact): Uint8Array {
  const { artifactType, content, annotations, more = [] } = artifact;
  const blobs = [{ mediaType: artifactType, content }, ...more];
  return formatManifest({
    artifactType,
    config: descriptorOf(EMPTY_TYPE, EMPTY),
    layers: blobs.map((blob) => descriptorOf(blob.mediaType, blob.content)),
    ...(subject && { subject: named(subject) }),
    annotations,
  });
}

/** A referrer is a descriptor, and more. */
function named({ mediaType, digest, size }: Descriptor): Descriptor {
  return { mediaType, digest, size };
}

/**
 * Pushes what every artifact has in the place of a configuration. Once for each repository is enough.
 *
 * @throws RegistryError
 */
export async function pushEmptyConfig(
  client: RegistryClient,
  at: Repository,
  signal: AbortSignal,
): Promise<void> {
  await client.putBlob(at, EMPTY, signal);
}

/** Pushes the blobs of an artifact, which its manifest names. @throws RegistryError */
export async function pushContents(
  client: RegistryClient,
  at: Repository,
  { content, more = [] }: Artifact,
  signal: AbortSignal,
): Promise<void> {
  for (const blob of [content, ...more.map((each) => each.content)]) await client.putBlob(at, blob, signal);
}

/**
 * Pushes an artifact; its subject may come later, the empty configuration has to be there.
 *
 * @returns how a list of referrers names it, and whether the registry put it on that list by itself.
 * @throws RegistryError
 */
export async function pushArtifact(
  client: RegistryClient,
  at: Repository,
  given: { readonly subject: Descriptor; readonly artifact: Artifact },
  signal: AbortSignal,
): Promise<{ readonly referrer: Referrer; readonly listed: boolean }> {
  const { subject, artifact } = given;
  const bytes = artifactManifest(subject, artifact);
  await pushContents(client, at, artifact, signal);
  const { digest, listed } = await client.putReferrer(at, { mediaType: OCI_MANIFEST, bytes }, signal);
  const { artifactType, annotations } = artifact;
  return {
    referrer: { mediaType: OCI_MANIFEST, digest, size: bytes.length, artifactType, annotations },
    listed,
  };
}

/**
 * The tag that stands for a digest where a tag is needed (distribution-spec, "Referrers Tag Schema"; cosign adds to
 * it).
 */
export function digestTag(digest: Digest): string {
  return digest.replace(':', '-');
}
