import { posix } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { type Digest, digestOf } from '../digest.ts';
import type { LayerEntry } from './entry.ts';

/** A layer as it is pushed. */
export interface Layer {
  /** Digest of the tar archive: the same on any machine for the same entries. */
  readonly diffId: Digest;
  /** Digest of the compressed bytes: the same for one version of zlib. */
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

/** Entries that can't make a layer. */
export class LayerError extends Error {
  constructor(path: string, why: string) {
    super(`layer entry ${JSON.stringify(path)}: ${why}`);
    this.name = 'LayerError';
  }
}

export interface LayerOptions {
  /** Modification time of every entry, in seconds since the epoch (SOURCE_DATE_EPOCH); default 0. */
  readonly mtimeSeconds?: number;
}

/** zlib's best: a layer is made once and pulled by every node. */
const GZIP_LEVEL = 9;
const PARENT_MODE = 0o755;
const SET_ID_BITS = 0o6000;

/**
 * Writes a layer: entries sorted by path, missing parents added, numeric owners, one time for all, so that the same
 * entries in any order give the same bytes.
 *
 * @throws LayerError for a path that is not absolute and normal, stands twice, lies below something that is no directory
 *   of the layer, or has set-id bits; nothing a layer says may surprise the node that unpacks it.
 */
export async function writeLayer(entries: readonly LayerEntry[], options: LayerOptions = {}): Promise<Layer> {
  const archive = await writeArchive(withParents(entries), options.mtimeSeconds ?? 0);
  const bytes = gzipSync(archive, { level: GZIP_LEVEL });
  return { diffId: digestOf(archive), digest: digestOf(bytes), bytes };
}

function withParents(entries: readonly LayerEntry[]): LayerEntry[] {
  const byPath = new Map<string, LayerEntry>();
  for (const entry of entries) {
    check(entry);
    if (byPath.has(entry.path)) throw new LayerError(entry.path, 'stands twice');
    byPath.set(entry.path, entry);
  }
  for (const { path } of entries) {
    for (let parent = posix.dirname(path); parent !== '/'; parent = posix.dirname(parent)) {
      const there = byPath.get(parent);
      if (there === undefined)
        byPath.set(parent, { type: 'directory', path: parent, mode: PARENT_MODE, uid: 0, gid: 0 });
      else if (there.type !== 'directory')
        throw new LayerError(path, `lies below ${parent}, which is a ${there.type}`);
    }
  }
  for (const entry of byPath.values()) {
    if (entry.type === 'hardlink' && byPath.get(entry.target)?.type !== 'file') {
      throw new LayerError(entry.path, `is a hard link to ${entry.target}, which is no file of the layer`);
    }
  }
  return [...byPath.values()].sort(inArchiveOrder);
}

/** A hard link comes after everything else: its target has to be there (POSIX pax, "linkname"). */
function inArchiveOrder(a: LayerEntry, b: LayerEntry): number {
  const rank = (entry: LayerEntry) => (entry.type === 'hardlink' ? 1 : 0);
  return rank(a) - rank(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

function check(entry: LayerEntry): void {
  const { path } = entry;
  if (
    !path.startsWith('/') ||
    path === '/' ||
    posix.normalize(path) !== path ||
    path.endsWith('/') ||
    path.includes('\0')
  ) {
    throw new LayerError(path, 'is no absolute path without "..", "." or empty parts');
  }
  if (posix.basename(path).startsWith('.wh.')) throw new LayerError(path, 'would be read as a whiteout');
  if (entry.type === 'file' && (entry.mode & SET_ID_BITS) !== 0) {
    throw new LayerError(path, `mode ${entry.mode.toString(8)} sets user or group id on execution`);
  }
}

async function writeArchive(entries: readonly LayerEntry[], mtimeSeconds: number): Promise<Buffer> {
  const archive = pack();
  const mtime = new Date(mtimeSeconds * 1000);
  for (const entry of entries) {
    const header: Partial<Header> & Pick<Header, 'name'> = { ...headerOf(entry), mtime };
    if (entry.type === 'file') archive.entry(header, Buffer.from(entry.content));
    else archive.entry(header);
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function headerOf(entry: LayerEntry): Partial<Header> & Pick<Header, 'name'> {
  const name = entry.path.slice(1);
  switch (entry.type) {
    case 'file':
      return {
        name,
        type: 'file',
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        size: entry.content.length,
      };
    case 'directory':
      return { name: `${name}/`, type: 'directory', mode: entry.mode, uid: entry.uid, gid: entry.gid };
    case 'symlink':
      return { name, type: 'symlink', linkname: entry.target, mode: 0o777, uid: entry.uid, gid: entry.gid };
    case 'hardlink':
      return { name, type: 'link', linkname: entry.target.slice(1), mode: 0o644, uid: 0, gid: 0 };
  }
}
