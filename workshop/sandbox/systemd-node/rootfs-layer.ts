import { createReadStream, existsSync } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import type { LayerEntry, LayerItem } from '../../../image/layer/entry.ts';
import { STOCK_KERNEL } from '../node/stock-image.ts';

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

/** Made anew on each machine, by systemd-tmpfiles. */
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
    yield text(`/usr/lib/modules/${STOCK_KERNEL}/vmlinuz`, 'no kernel\n');
    yield text(`/usr/lib/modules/${STOCK_KERNEL}/initramfs.img`, 'no initramfs\n');
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
