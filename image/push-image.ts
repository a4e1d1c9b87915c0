import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Digest } from '../api/references.ts';
import { type AppendOptions, appendLayer, type ImageDescription, type ImageDocuments } from './append.ts';
import { type Descriptor, descriptorOf, digestOfHash } from './digest.ts';
import type { Layer } from './layer/write-layer.ts';
import { parseManifest } from './manifest.ts';
import type { Reference } from './reference.ts';
import { layerType } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { RegistryError } from './registry/registry-error.ts';

/** An image that was pushed. */
interface PushedImage {
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
   * An image that the target's repository had lately. Where it is still there and has the same base, so are the
   * base's layers: a registry keeps what a manifest names.
   */
  readonly previous?: Digest | undefined;
}

/**
 * Codes by which a registry refuses a manifest that names a blob it does not have (distribution-spec, "Error Codes").
 */
const BLOB_MISSING = ['MANIFEST_BLOB_UNKNOWN', 'BLOB_UNKNOWN'];

/**
 * Pushes base + layer as a new image. The base's layers are mounted where the target is in the same registry and are
 * there already where it is the same repository; only from another registry they are copied, as they come.
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
 * Makes a blob of an image available in another repository: mounted within one registry, copied as it comes from
 * another.
 *
 * @returns what had to be done.
 * @throws RegistryError, ContentError
 */
async function bringBlob(
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

/** An image that is based on one that a registry has, and whose own layers lie on the disk. */
interface ImageOnBase {
  readonly base: Reference;
  readonly description: ImageDescription;
  /** Its configuration, byte for byte: base's layers and then its own. */
  readonly config: Uint8Array;
  /** Files with its own uncompressed layers, lowest first. */
  readonly layers: readonly string[];
}

/** Made once and pulled by every node, but of what an engine made: large, and no reason to wait. */
const GZIP_LEVEL = 6;

/**
 * Pushes an image whose base a registry has: the base's layers are mounted or copied, its own compressed and sent.
 *
 * @param target where to, by tag.
 * @returns its digest.
 * @throws RegistryError, ContentError, the file system's errors.
 */
export async function pushOnBase(
  client: RegistryClient,
  image: ImageOnBase,
  target: Reference,
  signal: AbortSignal,
): Promise<Digest> {
  const { base, description, config } = image;
  for (const blob of description.manifest.layers) await bringBlob(client, base, target, blob, signal);
  const mediaType = layerType(description.mediaType);
  const added: Descriptor[] = [];
  for (const file of image.layers) {
    const blob = await compress(file, signal);
    await client.putBlobStream(target, blob, createReadStream(blob.file), signal);
    await rm(blob.file);
    added.push({ mediaType, digest: blob.digest, size: blob.size });
  }
  await client.putBlob(target, config, signal);
  const manifest = {
    schemaVersion: 2,
    mediaType: description.mediaType,
    config: descriptorOf(description.manifest.config.mediaType, config),
    layers: [...description.manifest.layers, ...added],
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return client.putManifest(target, { mediaType: description.mediaType, bytes }, signal);
}

async function compress(
  file: string,
  signal: AbortSignal,
): Promise<{ readonly file: string; readonly digest: Digest; readonly size: number }> {
  const hash = createHash('sha256');
  const hashed = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  const compressed = `${file}.gz`;
  await pipeline(
    createReadStream(file),
    createGzip({ level: GZIP_LEVEL }),
    hashed,
    createWriteStream(compressed),
    { signal },
  );
  return { file: compressed, digest: digestOfHash(hash), size: (await stat(compressed)).size };
}
