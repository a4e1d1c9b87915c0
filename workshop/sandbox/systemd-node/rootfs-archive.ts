import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { lstat, readdir, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';
import { z } from 'zod';
import { type Digest, parseDigest } from '../../../api/references.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { digestOfHash } from '../../../image/digest.ts';
import type { LayerEntry, LayerItem } from '../../../image/layer/entry.ts';
import { tarMode, writeLayer } from '../../../image/layer/write-layer.ts';
import { whileLocked } from '../lock.ts';
import { STOCK_KERNEL } from '../node/stock-image.ts';
import { ensureRootfs, type RootfsRecipe } from './rootfs.ts';

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
  return archiveOf(await ensureRootfs(cacheDirectory, signal, onBuild, recipe), signal);
}

/**
 * Makes the archive of a root file system, unless it is there: beside it.
 *
 * @param rootfs a directory that nobody writes to.
 */
export async function archiveOf(rootfs: string, signal: AbortSignal): Promise<RootfsArchive> {
  const file = `${rootfs}.tar`;
  const note = `${rootfs}.json`;
  if (!existsSync(note)) {
    await whileLocked(file, signal, async () => {
      if (!existsSync(note)) await archiveRootfs(rootfs, { file, note }, signal);
    });
  }
  return { file, rootfs, ...Note.parse(JSON.parse(await readFile(note, 'utf8'))) };
}

async function archiveRootfs(
  rootfs: string,
  { file, note }: { readonly file: string; readonly note: string },
  signal: AbortSignal,
): Promise<void> {
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
  return digestOfHash(hash);
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
 * What a machine is installed from: its image, read from the root file system itself. The layers have their real
 * digests, so that those that a registry's image has as well are not pulled again.
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

/** As ostree's "Adapting existing systems" asks for: everything that changes is under /var or /etc. */
const LINKS: Readonly<Record<string, string>> = {
  '/home': 'var/home',
  '/media': 'run/media',
  '/mnt': 'var/mnt',
  '/opt': 'var/opt',
  '/ostree': 'sysroot/ostree',
  '/root': 'var/roothome',
  '/srv': 'var/srv',
  '/usr/local': '../var/usrlocal',
};

/** Created on each machine by systemd-tmpfiles. */
const EMPTY: ReadonlySet<string> = new Set(['/boot', '/dev', '/proc', '/run', '/sys', '/tmp', '/var']);

const TMPFILES = ['home', 'mnt', 'opt', 'roothome', 'srv', 'usrlocal']
  .map((name) => `d /var/${name} 0755 root root -\n`)
  .join('');

/**
 * Reads a distribution's root file system as the one layer of an ostree image.
 *
 * @param rootfs of ensureRootfs.
 */
export async function* rootfsLayer(rootfs: string): AsyncGenerator<LayerItem> {
  yield* readDirectory(rootfs, '/');
  yield { type: 'directory', path: '/sysroot', mode: 0o755, uid: 0, gid: 0 };
  for (const [name, target] of Object.entries(LINKS)) {
    yield { type: 'symlink', path: name, target, uid: 0, gid: 0 };
  }
  // ostree deploys nothing without a kernel; a container boots without one.
  if (!existsSync(path.join(rootfs, 'usr/lib/modules'))) {
    const modules = `/usr/lib/modules/${STOCK_KERNEL}`;
    // bootc without ostree takes no file whose directories have no entries.
    for (const place of [path.posix.dirname(modules), modules]) {
      yield { type: 'directory', path: place, mode: 0o755, uid: 0, gid: 0 };
    }
    yield text(`${modules}/vmlinuz`, 'no kernel\n');
    yield text(`${modules}/initramfs.img`, 'no initramfs\n');
  }
  yield text('/usr/lib/tmpfiles.d/00-stock.conf', TMPFILES);
}

async function* readDirectory(rootfs: string, directory: string): AsyncGenerator<LayerItem> {
  for (const child of (await readdir(path.join(rootfs, directory))).sort()) {
    const name = path.posix.join(directory, child);
    if (name in LINKS) continue;
    const place = path.join(rootfs, name);
    const { mode, uid, gid, ...stats } = await lstat(place).then((stat) => ({
      mode: stat.mode & 0o7777,
      uid: stat.uid,
      gid: stat.gid,
      isDirectory: stat.isDirectory(),
      isLink: stat.isSymbolicLink(),
      isFile: stat.isFile(),
    }));
    if (stats.isDirectory) {
      yield { type: 'directory', path: name, mode, uid, gid };
      if (!EMPTY.has(name)) yield* readDirectory(rootfs, name);
    } else if (stats.isLink) yield { type: 'symlink', path: name, target: await readlink(place), uid, gid };
    else if (stats.isFile) {
      yield { type: 'file', path: name, mode, uid, gid, content: createReadStream(place) };
    }
  }
}

function text(name: string, content: string): LayerEntry {
  return { type: 'file', path: name, mode: 0o644, uid: 0, gid: 0, content: Buffer.from(content) };
}
