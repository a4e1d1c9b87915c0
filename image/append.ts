import { platformsOf } from './architecture.ts';
import { type Digest, digestOf } from './digest.ts';
import type { Layer } from './layer/write-layer.ts';
import {
  chooseByPlatform,
  type ImageConfig,
  type Manifest,
  parseImageConfig,
  parseManifest,
} from './manifest.ts';
import type { Reference } from './reference.ts';
import type { Descriptor, RegistryClient } from './registry/registry-client.ts';
import { ContentError, RegistryError } from './registry/registry-error.ts';

/** An image by what describes it; its layers stay where they are. */
export interface ImageDescription {
  readonly digest: Digest;
  readonly mediaType: string;
  /** Size of the manifest as it came. */
  readonly manifestBytes: number;
  readonly manifest: Manifest;
  readonly config: ImageConfig;
  /** Of the index that led to it, where one did. */
  readonly platforms?: readonly string[];
}

export interface AppendOptions {
  /** Labels to set; those of the base that are not named stay. */
  readonly labels: Readonly<Record<string, string>>;
  /** RFC 3339; part of what is hashed, so the caller decides. */
  readonly created: string;
  /** One line of the image's history. */
  readonly comment: string;
}

/** A new image's documents, ready to be pushed. */
export interface ImageDocuments {
  readonly config: Uint8Array;
  readonly manifest: Uint8Array;
  readonly mediaType: string;
}

const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const MAX_CONFIG_BYTES = 8 * 1024 * 1024;

/**
 * Puts one layer on an image, or none, and sets labels. Pure: the same input gives the same bytes.
 *
 * @param base any OCI or Docker schema 2 image; the result is of the same family.
 * @param layer undefined to change labels only.
 */
export function appendLayer(
  base: ImageDescription,
  layer: Layer | undefined,
  options: AppendOptions,
): ImageDocuments {
  const oci = base.mediaType === OCI_MANIFEST;
  const labels = { ...base.config.config?.Labels, ...options.labels };
  const entry = {
    created: options.created,
    created_by: options.comment,
    ...(layer === undefined ? { empty_layer: true } : {}),
  };
  const config = Buffer.from(
    JSON.stringify({
      ...base.config,
      created: options.created,
      config: { ...base.config.config, Labels: sorted(labels) },
      rootfs: {
        ...base.config.rootfs,
        diff_ids: [...base.config.rootfs.diff_ids, ...(layer === undefined ? [] : [layer.diffId])],
      },
      history: [...(base.config.history ?? []), entry],
    }),
  );
  const layerType = oci
    ? 'application/vnd.oci.image.layer.v1.tar+gzip'
    : 'application/vnd.docker.image.rootfs.diff.tar.gzip';
  const added =
    layer === undefined ? [] : [{ mediaType: layerType, digest: layer.digest, size: layer.bytes.length }];
  const manifest = Buffer.from(
    JSON.stringify({
      ...base.manifest,
      mediaType: base.mediaType,
      config: { mediaType: base.manifest.config.mediaType, digest: digestOf(config), size: config.length },
      layers: [...base.manifest.layers, ...added],
    }),
  );
  return { config, manifest, mediaType: base.mediaType };
}

function sorted(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/**
 * Reads what describes an image: its manifest, for an index the one of the architecture, and its configuration. No layer.
 *
 * @throws RegistryError, ContentError
 */
export async function describeImage(
  client: RegistryClient,
  reference: Reference,
  architecture: string,
  signal: AbortSignal,
): Promise<ImageDescription> {
  const where = `${reference.registry}/${reference.repository}`;
  const raw = await client.getManifest(reference, signal);
  const parsed = parseManifest(raw.bytes, where);
  if (parsed.kind === 'index') {
    const digest = chooseByPlatform(parsed.index, architecture, where);
    const { registry, repository } = reference;
    const image = await describeImage(client, { registry, repository, digest }, architecture, signal);
    return { ...image, platforms: platformsOf(parsed.index) };
  }
  const { config } = parsed.manifest;
  if (config.size > MAX_CONFIG_BYTES)
    throw new ContentError(`${where}: a configuration of ${config.size} bytes`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of client.readBlob(reference, config, signal)) chunks.push(chunk);
  return {
    digest: raw.digest,
    mediaType: parsed.manifest.mediaType ?? raw.mediaType,
    manifestBytes: raw.bytes.length,
    manifest: parsed.manifest,
    config: parseImageConfig(Buffer.concat(chunks), where),
  };
}

/** An image that was pushed. */
export interface PushedImage {
  readonly digest: Digest;
  /** Whether the layer had to be sent; an image of other labels alone has it already. */
  readonly layerSent: boolean;
  /** Bytes of layers that were sent or copied, and that the registry mounted. */
  readonly bytes: { readonly sent: number; readonly mounted: number };
}

interface AppendedImage {
  readonly base: Reference;
  readonly description: ImageDescription;
  readonly target: Reference;
  readonly layer: Layer | undefined;
  readonly options: AppendOptions;
  /**
   * An image that the target's repository had lately. Where it is still there and stands on the same base, so are the
   * base's layers: a registry keeps what a manifest names.
   */
  readonly previous?: Digest;
}

/** Codes by which a registry refuses a manifest that names a blob it does not have (distribution-spec, "Error Codes"). */
const BLOB_MISSING = ['MANIFEST_BLOB_UNKNOWN', 'BLOB_UNKNOWN'];

/**
 * Pushes base + layer as a new image. The base's layers are mounted where the target is in the same registry and are there
 * already where it is the same repository; only from another registry they are copied, as they come.
 *
 * @throws RegistryError, ContentError
 */
export async function pushAppended(
  client: RegistryClient,
  image: AppendedImage,
  signal: AbortSignal,
): Promise<PushedImage> {
  const { description, target, layer, options } = image;
  const documents = appendLayer(description, layer, options);
  const manifest = { mediaType: documents.mediaType, bytes: documents.manifest };
  const hasBase = await standsOnBase(client, image, signal);
  const { layerSent, bytes } = await bringParts(client, { ...image, hasBase }, documents, signal);
  // The manifest comes last: a registry never has an image whose parts are not all there.
  try {
    return { digest: await client.putManifest(target, manifest, signal), layerSent, bytes };
  } catch (error) {
    if (!(error instanceof RegistryError && BLOB_MISSING.includes(error.code))) throw error;
  }
  // Somebody deleted a part between its push and the manifest's: everything is looked after once more.
  await bringParts(client, { ...image, hasBase: false }, documents, signal);
  return {
    digest: await client.putManifest(target, manifest, signal),
    layerSent: layer !== undefined,
    bytes,
  };
}

/** Requests that a registry is asked at a time; each waits for the registry's disk. */
const PARALLEL = 4;

/** One question in place of one for each layer of the base. */
async function standsOnBase(
  client: RegistryClient,
  { base, description, target, previous }: AppendedImage,
  signal: AbortSignal,
): Promise<boolean> {
  const { registry, repository } = target;
  if (previous === undefined || (base.registry === registry && base.repository === repository)) return false;
  try {
    const { bytes } = await client.getManifest({ registry, repository, digest: previous }, signal);
    const parsed = parseManifest(bytes, `${registry}/${repository}@${previous}`);
    const there = new Set(parsed.kind === 'image' ? parsed.manifest.layers.map(({ digest }) => digest) : []);
    return description.manifest.layers.every(({ digest }) => there.has(digest));
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return false;
    throw error;
  }
}

async function bringParts(
  client: RegistryClient,
  { base, description, target, layer, hasBase }: AppendedImage & { readonly hasBase: boolean },
  { config }: ImageDocuments,
  signal: AbortSignal,
): Promise<Pick<PushedImage, 'layerSent' | 'bytes'>> {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  let layerSent = false;
  const bytes = { sent: 0, mounted: 0 };
  const parts = [
    async () => {
      if (layer === undefined) return;
      layerSent = (await client.putBlob(target, layer.bytes, either)).sent;
      if (layerSent) bytes.sent += layer.bytes.length;
    },
    () => client.putBlob(target, config, either),
    ...(hasBase ? [] : description.manifest.layers).map((blob) => async () => {
      const how = await bringBlob(client, base, target, blob, either);
      if (how === 'copied') bytes.sent += blob.size;
      else if (how === 'mounted') bytes.mounted += blob.size;
    }),
  ].values();
  const work = async () => {
    for (const bring of parts) await bring();
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, work));
    return { layerSent, bytes };
  } finally {
    // One that failed ends the others: nothing is sent for an image that will not be.
    ended.abort();
  }
}

/**
 * Makes a blob of an image available in another repository: mounted within one registry, copied as it comes from another.
 *
 * @returns what had to be done.
 * @throws RegistryError, ContentError
 */
export async function bringBlob(
  client: RegistryClient,
  base: Reference,
  target: Reference,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<'there' | 'mounted' | 'copied'> {
  if (base.registry === target.registry) {
    if (base.repository === target.repository) return 'there';
    if (await client.mountBlob(target, blob.digest, base.repository, signal)) return 'mounted';
  }
  if (await client.hasBlob(target, blob.digest, signal)) return 'there';
  await client.putBlobStream(target, blob, client.readBlob(base, blob, signal), signal);
  return 'copied';
}
