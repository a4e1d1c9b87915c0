import { buffer } from 'node:stream/consumers';
import type { Digest } from '../api/references.ts';
import { digestTag } from './artifact.ts';
import { descriptorOf } from './digest.ts';
import { formatManifest, type Manifest, parseManifest } from './manifest.ts';
import { bareRepository, formatReference, type Reference, type Repository } from './reference.ts';
import { manifestAt } from './referrers.ts';
import { OCI_CONFIG, OCI_MANIFEST } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

/** On a signature's layer: the signature of the payload, in base64 (cosign, SIGNATURE_SPEC.md "Storage"). */
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';

/** A signature or a signed statement, as the layer of an image that lies beside the one it is about. */
export type AttachedLayer = Manifest['layers'][number];

/** What lies beside an image, by the end of its tag (cosign, SIGNATURE_SPEC.md "Tag-based Discovery"). */
export interface AttachedPlace {
  readonly at: Repository;
  /** Of the image. */
  readonly digest: Digest;
  readonly kind: 'sig' | 'att';
}

/** cosign looks at no more either by default. */
const MAX_LAYERS = 100;

/** @returns the layers there are; none where nothing lies there. @throws RegistryError, ContentError */
export async function readAttached(
  client: RegistryClient,
  place: AttachedPlace,
  signal: AbortSignal,
): Promise<readonly AttachedLayer[]> {
  const reference = referenceOf(place);
  const raw = await manifestAt(client, reference, signal);
  if (raw === undefined) return [];
  const where = formatReference(reference);
  const parsed = parseManifest(raw.bytes, where);
  if (parsed.kind !== 'image')
    throw new ContentError(`${where}: found an image index, expected an image that holds signatures`);
  const { layers } = parsed.manifest;
  if (layers.length > MAX_LAYERS)
    throw new ContentError(`${where}: has ${layers.length} signatures, more than the limit of ${MAX_LAYERS}`);
  return layers;
}

/**
 * Adds a layer to those there are.
 *
 * @param given.before what readAttached gave.
 * @throws RegistryError
 */
export async function pushAttached(
  client: RegistryClient,
  place: AttachedPlace,
  given: {
    readonly before: readonly AttachedLayer[];
    readonly content: Uint8Array;
    readonly mediaType: string;
    readonly annotations: Readonly<Record<string, string>>;
  },
  signal: AbortSignal,
): Promise<void> {
  const { before, content, mediaType, annotations } = given;
  const layer = { ...descriptorOf(mediaType, content), annotations };
  const { config, manifest } = documents([...before, layer]);
  await client.putBlob(place.at, content, signal);
  await client.putBlob(place.at, config, signal);
  await client.putManifest(referenceOf(place), { mediaType: OCI_MANIFEST, bytes: manifest }, signal);
}

/**
 * Reads a layer's content.
 *
 * @returns undefined for one of another media type, or a larger one: Shale did not write it, and a registry could fill
 *   the memory with it.
 * @throws RegistryError, ContentError
 */
export async function readContent(
  client: RegistryClient,
  place: AttachedPlace,
  given: { readonly layer: AttachedLayer; readonly mediaType: string; readonly maxBytes: number },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { layer, mediaType, maxBytes } = given;
  if (layer.mediaType !== mediaType || layer.size > maxBytes) return undefined;
  return await buffer(client.readBlob(place.at, layer, signal));
}

/** @returns the value of a layer's annotation. */
export function annotationOf(layer: AttachedLayer, name: string): string | undefined {
  const value = (layer['annotations'] as Record<string, unknown> | undefined)?.[name];
  return typeof value === 'string' ? value : undefined;
}

function referenceOf({ at, digest, kind }: AttachedPlace): Reference {
  return { ...bareRepository(at), tag: `${digestTag(digest)}.${kind}` };
}

/** An image, as cosign makes it; its configuration describes nothing that could run. */
function documents(layers: readonly AttachedLayer[]): {
  readonly config: Uint8Array;
  readonly manifest: Uint8Array;
} {
  const config = Buffer.from(
    JSON.stringify({
      architecture: '',
      os: '',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
    }),
  );
  return { config, manifest: formatManifest({ config: descriptorOf(OCI_CONFIG, config), layers }) };
}
