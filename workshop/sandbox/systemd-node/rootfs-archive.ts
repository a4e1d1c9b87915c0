import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';
import { z } from 'zod';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { type Digest, finish, parseDigest } from '../../../image/digest.ts';
import type { LayerEntry, LayerItem } from '../../../image/layer/entry.ts';
import { tarMode, writeLayer } from '../../../image/layer/write-layer.ts';
import { ensureRootfs, type RootfsRecipe } from './rootfs.ts';
import { rootfsLayer } from './rootfs-layer.ts';

/** A root file system as the layer of an image, in a file: not compressed, so that its digest is its diffID. */
export interface RootfsArchive {
  readonly file: string;
  readonly digest: Digest;
  readonly size: number;
  /** The directory that it was made of. */
  readonly rootfs: string;
}

const Note = z.object({ digest: z.string().transform(parseDigest), size: z.int().positive() });

/**
 * Makes Debian's root file system, and the archive of it, unless they are there.
 *
 * @param onBuild called when that takes a minute or so. @throws OsCommandError when a package can't be had.
 */
export async function ensureRootfsArchive(
  cacheDirectory: string,
  signal: AbortSignal,
  onBuild?: () => void,
  recipe?: RootfsRecipe,
): Promise<RootfsArchive> {
  const rootfs = await ensureRootfs(cacheDirectory, signal, onBuild, recipe);
  const file = `${rootfs}.tar`;
  const note = `${rootfs}.json`;
  if (!existsSync(note)) {
    const building = `${file}.${randomUUID()}`;
    try {
      const digest = await writeArchive(rootfsLayer(rootfs), building, signal);
      const { size } = await stat(building);
      await rename(building, file);
      await writeFile(building, JSON.stringify({ digest, size }));
      await rename(building, note);
    } finally {
      await rm(building, { force: true });
    }
  }
  return { file, rootfs, ...Note.parse(JSON.parse(await readFile(note, 'utf8'))) };
}

async function writeArchive(
  items: AsyncIterable<LayerItem>,
  file: string,
  signal: AbortSignal,
): Promise<Digest> {
  const archive = pack();
  const hash = createHash('sha256');
  const output = createWriteStream(file);
  const written = (async () => {
    for await (const chunk of archive as unknown as AsyncIterable<Buffer>) {
      hash.update(chunk);
      if (!output.write(chunk)) await once(output, 'drain', { signal });
    }
    output.end();
    await once(output, 'close');
  })();
  for await (const item of items) {
    signal.throwIfAborted();
    await add(archive, item);
  }
  archive.finalize();
  await written;
  return finish(hash);
}

async function add(archive: ReturnType<typeof pack>, item: LayerItem): Promise<void> {
  const name = item.path.replace(/^\//, '');
  // A time of its own would make another digest of each archive.
  const mtime = new Date(0);
  switch (item.type) {
    case 'file': {
      const { mode, uid, gid, content } = item;
      const bytes = content instanceof Uint8Array ? Buffer.from(content) : await buffer(content);
      await entry(
        archive,
        { name, mode: tarMode(mode), uid, gid, mtime, type: 'file', size: bytes.length },
        bytes,
      );
      break;
    }
    case 'directory':
      await entry(archive, {
        name: `${name}/`,
        mode: tarMode(item.mode),
        uid: item.uid,
        gid: item.gid,
        mtime,
        type: 'directory',
      });
      break;
    case 'symlink':
      await entry(archive, {
        name,
        mode: 0o777,
        uid: item.uid,
        gid: item.gid,
        mtime,
        type: 'symlink',
        linkname: item.target,
      });
      break;
    default:
      throw new TypeError(`${item.path}: a root file system has no ${item.type}`);
  }
}

/** Waits until the archive has taken it, so that no more than one file is in memory. */
function entry(
  archive: ReturnType<typeof pack>,
  header: Partial<Header> & Pick<Header, 'name'>,
  bytes?: Buffer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const taken = (error?: Error | null) => (error ? reject(error) : resolve());
    if (bytes === undefined) archive.entry(header, taken);
    else archive.entry(header, bytes, taken);
  });
}

/**
 * What a machine is installed from: its image, read from the root file system itself. The layers have their real digests, so
 * that those that a registry's image has as well are not pulled again.
 *
 * @param entries of the layer above the root file system.
 */
export async function rootfsSource(
  archive: RootfsArchive,
  entries: readonly LayerEntry[],
): Promise<ImageSource> {
  const { diffId, digest, bytes } = await writeLayer(entries);
  return {
    open: async () => ({
      labels: {},
      layers: [
        {
          diffId: archive.digest,
          digest: archive.digest,
          size: archive.size,
          read: () => rootfsLayer(archive.rootfs),
        },
        {
          diffId,
          digest,
          size: bytes.length,
          async *read() {
            yield* entries;
          },
        },
      ],
    }),
  };
}
