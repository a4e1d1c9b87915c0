import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { extract } from 'tar-stream';
import { z } from 'zod';
import type { Digest } from '../../api/references.ts';
import { digestOfHash } from '../digest.ts';
import { feed, tarEntries } from '../layer/read-tar.ts';
import { ContentError } from '../registry/registry-error.ts';
import { ARCHIVE_LIMITS, ArchiveCount, type ArchiveLimits } from './archive-limits.ts';

/** A layer of an archive. */
interface UnpackedLayer {
  readonly diffId: Digest;
  /** Where its uncompressed bytes lie; absent where the caller has them. */
  readonly file: string | undefined;
}

interface UnpackedImage {
  /** The image's configuration, byte for byte. */
  readonly config: Uint8Array;
  /** Lowest first. */
  readonly layers: readonly UnpackedLayer[];
}

const ArchiveManifest = z
  .array(z.looseObject({ Config: z.string(), Layers: z.array(z.string()).max(1000) }))
  .length(1);

const Config = z.looseObject({ rootfs: z.looseObject({ diff_ids: z.array(z.string()) }) });

interface UnpackOptions {
  readonly dir: string;
  readonly known: ReadonlySet<Digest>;
  readonly limits?: Partial<ArchiveLimits>;
}

/**
 * Unpacks what an engine saves (`docker save`; Docker image spec v1.2): one image, its layers as files of a directory.
 *
 * @param archive the tar archive as it comes.
 * @param options `dir` takes the layers; those of `known` are not kept.
 * @throws ArchiveTooLarge before more is read than `limits` permits.
 * @throws ContentError for anything but one image, and for layers that are not those of its configuration; the file
 *   system's errors; the signal's reason.
 */
export async function unpackImageArchive(
  archive: AsyncIterable<Uint8Array>,
  { dir, known, limits }: UnpackOptions,
  signal: AbortSignal,
): Promise<UnpackedImage> {
  const reader = extract();
  const feeding = feed(reader, archive);
  feeding.catch(() => undefined);
  const layers = new Map<string, UnpackedLayer>();
  const links = new Map<string, string>();
  const documents = new Map<string, Uint8Array>();
  const count = new ArchiveCount({ ...ARCHIVE_LIMITS, ...limits });
  try {
    for await (const entry of tarEntries(reader)) {
      signal.throwIfAborted();
      const { name, type, linkname } = entry.header;
      count.take(entry.header);
      if (type === 'symlink' || type === 'link') {
        links.set(
          name,
          type === 'link' ? (linkname ?? '') : path.posix.join(path.posix.dirname(name), linkname ?? ''),
        );
        entry.resume();
      } else if (type === 'file' && name.endsWith('.tar')) {
        layers.set(name, await keepLayer(entry, { file: path.join(dir, `${layers.size}.tar`), known }));
      } else if (type === 'file' && name.endsWith('.json') && count.mayRead(entry.header)) {
        documents.set(name, await buffer(entry));
      } else entry.resume();
    }
    await feeding;
  } finally {
    reader.destroy();
  }
  const [image] = readManifest(documents.get('manifest.json'));
  const config = documents.get(image.Config);
  if (config === undefined)
    throw new ContentError(`the engine's archive has no ${image.Config}, which its manifest.json names`);
  const unpacked = image.Layers.map((name) => {
    const layer = layers.get(name) ?? layers.get(links.get(name) ?? '');
    if (layer === undefined)
      throw new ContentError(`the engine's archive has no ${name}, which its manifest.json names`);
    return layer;
  });
  checkDiffIds(config, unpacked);
  return { config, layers: unpacked };
}

/**
 * A node that pulled layers other than those of the configuration would refuse the image (OCI image-spec, config.md
 * "diff_ids").
 */
function checkDiffIds(config: Uint8Array, layers: readonly UnpackedLayer[]): void {
  const expected = diffIdsOf(config);
  if (expected.length !== layers.length) {
    throw new ContentError(
      `the engine's archive has ${layers.length} layers, expected the ${expected.length} of its configuration`,
    );
  }
  for (const [index, { diffId }] of layers.entries()) {
    if (diffId === expected[index]) continue;
    throw new ContentError(
      `layer ${index + 1} of the engine's archive has the diffID ${diffId}, expected ${expected[index]} as in its configuration`,
    );
  }
}

function diffIdsOf(config: Uint8Array): readonly string[] {
  try {
    return Config.parse(JSON.parse(Buffer.from(config).toString('utf8'))).rootfs.diff_ids;
  } catch (cause) {
    throw new ContentError("the configuration in the engine's archive has no list of diffIDs", { cause });
  }
}

function readManifest(bytes: Uint8Array | undefined): [z.infer<typeof ArchiveManifest>[number]] {
  try {
    const [image] = ArchiveManifest.parse(JSON.parse(Buffer.from(bytes ?? []).toString('utf8')));
    if (image !== undefined) return [image];
  } catch (cause) {
    throw new ContentError("the engine's archive has no manifest.json of one image", { cause });
  }
  throw new ContentError("the engine's archive has no image");
}

async function keepLayer(
  bytes: AsyncIterable<Uint8Array>,
  { file, known }: { readonly file: string; readonly known: ReadonlySet<Digest> },
): Promise<UnpackedLayer> {
  const hash = createHash('sha256');
  await using handle = await open(file, 'wx');
  for await (const chunk of bytes) {
    hash.update(chunk);
    await handle.writeFile(chunk);
  }
  const diffId = digestOfHash(hash);
  if (!known.has(diffId)) return { diffId, file };
  await rm(file);
  return { diffId, file: undefined };
}
