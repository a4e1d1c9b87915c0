import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { by } from '../api/order.ts';
import type { LayerEntry } from '../image/layer/entry.ts';

const OWNER = { uid: 0, gid: 0 };
/** As .dockerignore has them: what only tests read, and the page's sources. */
const LEFT_OUT = /\.test\.tsx?$|(?:^|\/)testdata(?:\/|$)|^page\/app(?:\/|$)/;

/**
 * Reads what the image has in /shale: the rooms that the Containerfile copies with the programs bundled from them, and
 * the npm packages without Node, which every platform has its own of.
 *
 * @param root of the checkout.
 * @param packages where `bin/image-packages` installed the npm packages.
 * @returns entries with their paths in the image.
 * @throws Error when the programs or the page aren't built.
 */
export async function shaleFiles(root: string, packages: string): Promise<LayerEntry[]> {
  const containerfile = await readFile(path.join(root, 'Containerfile'), 'utf8');
  const rooms = [...containerfile.matchAll(/^COPY (\S+) \/shale\/\1$/gm)].map(([, room = '']) => room);
  const entries: LayerEntry[] = [];
  for (const room of rooms) {
    entries.push(
      ...(await treeOf(path.join(root, room), `/shale/${room}`, (file) => !LEFT_OUT.test(`${room}/${file}`))),
    );
  }
  for (const built of ['/shale/cli/dist/main.mjs', '/shale/page/dist/index.html']) {
    if (!entries.some((entry) => entry.path === built)) {
      throw new Error(`${built.slice('/shale/'.length)} is missing: run make page programs first`);
    }
  }
  const isNode = (file: string) => /^node_modules\/(?:node(?:-linux-[^/]+)?(?:\/|$)|\.bin\/node$)/.test(file);
  entries.push(...(await treeOf(packages, '/shale', (file) => !isNode(file))));
  return entries;
}

/**
 * @param place where a directory's content lies in the image.
 * @param takes decides by a path in the directory.
 * @returns files and links below it. Modes say only whether a file can be executed: a checkout's umask is nobody's
 *   business.
 */
export async function treeOf(
  directory: string,
  place: string,
  takes: (file: string) => boolean = () => true,
): Promise<LayerEntry[]> {
  const names = (await readdir(directory, { recursive: true })).filter(takes).sort();
  const entries: LayerEntry[] = [];
  for (const name of names) {
    const file = path.join(directory, name);
    const stats = await lstat(file);
    const at = path.posix.join(place, name);
    if (stats.isSymbolicLink()) {
      entries.push({ type: 'symlink', path: at, target: await readlink(file), ...OWNER });
    } else if (stats.isFile()) {
      const mode = (stats.mode & 0o100) === 0 ? 0o644 : 0o755;
      entries.push({ type: 'file', path: at, mode, content: await readFile(file), ...OWNER });
    }
  }
  return entries.sort(by((entry) => entry.path));
}

/** @returns a file of the image that root owns. */
export function fileEntry(at: string, content: Uint8Array | string, mode = 0o644): LayerEntry {
  return { type: 'file', path: at, mode, content: Buffer.from(content), ...OWNER };
}
