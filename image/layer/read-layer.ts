import { createHash } from 'node:crypto';
import { Readable, type Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { errorMessage } from '../../api/error-message.ts';
import type { Digest } from '../../api/references.ts';
import { digestOfHash } from '../digest.ts';
import type { LayerItem } from './entry.ts';
import { feed, type TarEntry, tarEntries } from './read-tar.ts';
import { XattrTap } from './xattr-tap.ts';
import { frameByFrame } from './zstd-frames.ts';

/** A layer that is not what its image says, or that no image may have. */
export class LayerError extends Error {
  override readonly name = 'LayerError';
}

interface LayerDescription {
  readonly mediaType: string;
  /** Digest of the uncompressed layer (OCI image-spec, config.md "Layer DiffID"). */
  readonly diffId: Digest;
}

/** Bytes of a layer, uncompressed: a small blob can hold very many. */
const MAX_UNCOMPRESSED = 64 * 1024 ** 3;

/** Entries of a layer: a small blob can have very many of them, and each entry of a base image is kept in memory. */
const MAX_ENTRIES = 1_000_000;

interface ReadOptions {
  readonly mostEntries?: number;
  /** Bytes that a layer may have uncompressed. */
  readonly most?: number;
  /** Devices outside of /dev and fifos: refused by who has to make them, or taken for files without content. */
  readonly special?: 'refuse' | 'as files';
}

/**
 * Reads a layer entry by entry; memory stays the same whatever its size.
 *
 * @param blob the compressed layer; the caller verifies its digest and size.
 * @yields what the layer does, in its order. When it is done the diffID was verified: until then nothing may be
 *   believed.
 * @throws LayerError for an unknown compression, a broken archive, more bytes or entries than it may have, a device
 *   outside of /dev, a fifo, a path with `..`, another diffID; what reading the blob throws.
 */
export async function* readLayer(
  blob: AsyncIterable<Uint8Array>,
  layer: LayerDescription,
  signal: AbortSignal,
  { most = MAX_UNCOMPRESSED, mostEntries = MAX_ENTRIES, special = 'refuse' }: ReadOptions = {},
): AsyncGenerator<LayerItem, void, void> {
  const hash = createHash('sha256');
  // An archive of Unix V7 has no mark of its format; checksums are verified all the same.
  const archive = extract({ allowUnknownFormat: true } as object);
  const tap = new XattrTap();
  // Fed by hand: as the end of a stream pipeline the archive would be torn down with entries still in it.
  const feeding = feed(archive, tapped(decompress(blob, layer.mediaType), { hash, tap, most }, signal));
  feeding.catch(() => undefined);
  const explained = async (error: unknown) =>
    error instanceof LayerError || signal.aborted
      ? error
      : ((await failureOf(feeding)) ?? asLayerError(error));
  let entries = 0;
  try {
    for await (const entry of tarEntries(archive)) {
      signal.throwIfAborted();
      entries += 1;
      if (entries > mostEntries) throw new LayerError(`a layer has more than ${mostEntries} entries`);
      const item = itemOf(entry, contentOf(entry, explained), tap.next(), special);
      if (item !== undefined) yield item;
      entry.resume();
    }
    await feeding;
  } catch (error) {
    throw await explained(error);
  } finally {
    archive.destroy();
  }
  const diffId = digestOfHash(hash);
  if (diffId !== layer.diffId)
    throw new LayerError(`a layer of diffID ${layer.diffId} has the diffID ${diffId}`);
}

/** Who reads the content of an entry is the first to see that the archive or its source ends in it. */
async function* contentOf(
  entry: AsyncIterable<Uint8Array>,
  explained: (error: unknown) => Promise<unknown>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* entry;
  } catch (error) {
    throw await explained(error);
  }
}

function asLayerError(error: unknown): LayerError {
  return new LayerError(`a layer can't be read: ${errorMessage(error)}`, {
    cause: error,
  });
}

/** @returns why feeding failed, which is the cause when the archive then ends too early. */
async function failureOf(feeding: Promise<void>): Promise<unknown> {
  return feeding.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** Hashes and counts what passes, and listens to it. */
async function* tapped(
  bytes: AsyncIterable<Uint8Array>,
  {
    hash,
    tap,
    most,
  }: { readonly hash: ReturnType<typeof createHash>; readonly tap: XattrTap; readonly most: number },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of bytes) {
    signal.throwIfAborted();
    size += chunk.length;
    if (size > most) throw new LayerError(`a layer has more than ${most} bytes uncompressed`);
    hash.update(chunk);
    tap.push(chunk);
    yield chunk;
  }
}

/** Of what is decompressed at a time: with Node's 16 KiB it takes twice the time. */
const CHUNK_BYTES = 256 * 1024;

/** By the media types of OCI and Docker schema 2: `…tar`, `…tar+gzip`, `…tar.gzip`, and so for zstd. */
function decompress(blob: AsyncIterable<Uint8Array>, mediaType: string): AsyncIterable<Uint8Array> {
  if (/\.tar$/.test(mediaType)) return blob;
  if (/\.tar[+.]gzip$/.test(mediaType)) return through(blob, createGunzip({ chunkSize: CHUNK_BYTES }));
  if (/\.tar[+.]zstd$/.test(mediaType))
    return through(frameByFrame(blob), createZstdDecompress({ chunkSize: CHUNK_BYTES }));
  throw new LayerError(`a layer of media type ${mediaType}: only tar, gzip and zstd can be read`);
}

async function* through(bytes: AsyncIterable<Uint8Array>, transform: Transform): AsyncGenerator<Uint8Array> {
  const source = Readable.from(bytes);
  let broken: Error | undefined;
  source.once('error', (error) => {
    broken = error;
    transform.destroy(error);
  });
  source.pipe(transform);
  try {
    for await (const chunk of transform) yield chunk as Uint8Array;
  } catch (error) {
    throw error === broken ? error : asLayerError(error);
  } finally {
    source.destroy();
    transform.destroy();
  }
}

const WHITEOUT = '.wh.';
/**
 * Whiteouts with this prefix are notes of the aufs file system; one of them has a meaning (layer.md "Opaque Whiteout").
 */
const OPAQUE = '.wh..wh..opq';
const AUFS_NOTES = '.wh..wh.';

/** @returns undefined for what says nothing about the image. */
function itemOf(
  { header }: TarEntry,
  content: AsyncIterable<Uint8Array>,
  xattrs: ReadonlyMap<string, Uint8Array> | undefined,
  special: NonNullable<ReadOptions['special']>,
): LayerItem | undefined {
  const path = plainPath(header.name);
  if (Object.keys(header.pax ?? {}).some((key) => key.startsWith('GNU.sparse.'))) {
    throw new LayerError(`/${path}: sparse files can't be read; expected none (OCI image-spec, layer.md)`);
  }
  const slash = path.lastIndexOf('/');
  const name = path.slice(slash + 1);
  const parent = slash === -1 ? '' : path.slice(0, slash);
  if (name === OPAQUE) return { type: 'opaque', path: parent };
  if (name.startsWith(AUFS_NOTES)) return undefined;
  if (name.startsWith(WHITEOUT)) {
    const hidden = name.slice(WHITEOUT.length);
    return { type: 'whiteout', path: parent === '' ? hidden : `${parent}/${hidden}` };
  }
  if (isOfDev(header, path)) return undefined;
  if (special === 'as files' && SPECIAL.has(header.type ?? 'file')) {
    return { type: 'file', path, mode: header.mode & 0o7777, ...ownerOf(header), content: new Uint8Array() };
  }
  return entryItem(header, path, content, xattrs);
}

/**
 * debootstrap and mmdebstrap leave devices in /dev, and engines import them. Nothing reads them: a file system that the
 * kernel fills is mounted over them at boot. ostree can't store them, and bootc leaves out all of /dev (ostree-ext,
 * EXCLUDED_TOPLEVEL_PATHS).
 */
function isOfDev({ type }: Header, path: string): boolean {
  return path.startsWith('dev/') && (type === 'character-device' || type === 'block-device');
}

const SPECIAL: ReadonlySet<string> = new Set(['character-device', 'block-device', 'fifo']);

function entryItem(
  header: Header,
  path: string,
  content: AsyncIterable<Uint8Array>,
  attributes: ReadonlyMap<string, Uint8Array> | undefined,
): LayerItem {
  const owner = ownerOf(header);
  const xattrs = attributes === undefined ? {} : { xattrs: Object.fromEntries(attributes) };
  const mode = header.mode & 0o7777;
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      return { type: 'file', path, mode, ...owner, content, ...xattrs };
    case 'directory':
      return { type: 'directory', path, mode, ...owner, ...xattrs };
    case 'symlink':
      return { type: 'symlink', path, target: header.linkname, ...owner };
    case 'link':
      return { type: 'hardlink', path, target: plainPath(header.linkname) };
    default:
      throw new LayerError(
        header.type === null
          ? `/${path}: an entry of a kind that is not known`
          : `/${path}: a ${header.type} can't be part of an image`,
      );
  }
}

/** Ids that a header has no room for stand in the PAX header, which tar-stream reads and does not apply. */
function ownerOf({ uid, gid, pax }: Header): { readonly uid: number; readonly gid: number } {
  const records = (pax ?? {}) as Readonly<Record<string, string>>;
  const said = (key: string) => (/^\d+$/.test(records[key] ?? '') ? Number(records[key]) : undefined);
  return { uid: said('uid') ?? uid, gid: said('gid') ?? gid };
}

/** @returns the path without leading `./` and slashes. @throws LayerError for one that could lead out of the image. */
function plainPath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || name.includes('\0')) {
    throw new LayerError(`${JSON.stringify(name)}: a path in a layer has no ".." and no NUL`);
  }
  return parts.join('/');
}
