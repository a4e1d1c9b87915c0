import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { bringBlob, type ImageDescription } from './append.ts';
import { type Digest, digestOf, finish } from './digest.ts';
import type { Reference } from './reference.ts';
import type { Descriptor, RegistryClient } from './registry/registry-client.ts';

/** An image that stands on a base that a registry has, and whose own layers lie on the disk. */
export interface ImageOnBase {
  readonly base: Reference;
  readonly description: ImageDescription;
  /** Its configuration, byte for byte: base's layers and then its own. */
  readonly config: Uint8Array;
  /** Files with its own uncompressed layers, lowest first. */
  readonly layers: readonly string[];
}

/** Made once and pulled by every node, but of what an engine made: large, and no reason to wait. */
const GZIP_LEVEL = 6;
const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

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
  const isDocker = description.mediaType === DOCKER_MANIFEST;
  const mediaType = isDocker
    ? 'application/vnd.docker.image.rootfs.diff.tar.gzip'
    : 'application/vnd.oci.image.layer.v1.tar+gzip';
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
    config: {
      mediaType: description.manifest.config.mediaType,
      digest: digestOf(config),
      size: config.length,
    },
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
  return { file: compressed, digest: finish(hash), size: (await stat(compressed)).size };
}
