import { constants } from 'node:fs';
import { posix } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import type { Digest } from '../../api/references.ts';
import { digestOf } from '../digest.ts';
import type { LayerEntry, Xattrs } from './entry.ts';
import { paxBlocks, paxHeaderOf } from './pax-header.ts';

/** A layer as it is pushed. */
export interface Layer {
  /** Digest of the tar archive: the same on any machine for the same entries. */
  readonly diffId: Digest;
  /** Digest of the compressed bytes: the same for one version of zlib. */
  readonly digest: Digest;
  readonly bytes: Uint8Array;
  /** Bytes of the tar archive. */
  readonly archiveBytes: number;
}

/** Entries that can't make a layer. */
export class LayerEntriesError extends Error {
  constructor(path: string, why: string) {
    super(`layer entry ${JSON.stringify(path)}: ${why}`);
    this.name = 'LayerError';
  }
}

/** What lower layers have at a path. */
export type BelowEntry =
  | {
      readonly kind: 'directory';
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly xattrs?: Xattrs;
    }
  | { readonly kind: 'link' | 'file' };

interface LayerOptions {
  /**
   * What lower layers have at a path. Parents are entries, because unpackers make up those that are not, and an entry
   * sets the attributes of the directory below it (OCI image-spec, layer.md): so they have those that are there.
   */
  readonly below?: (path: string) => BelowEntry | undefined;
  /** Modification time of every entry, in seconds since the epoch (SOURCE_DATE_EPOCH); default 0. */
  readonly mtimeSeconds?: number;
}

/** zlib's best: a layer is made once and pulled by every node. */
const GZIP_LEVEL = 9;
const PARENT_MODE = 0o755;
const SET_ID_BITS = 0o6000;
const WHITEOUT = '.wh.';

/**
 * Writes a layer: entries sorted by path, missing parents added as lower layers have them, numeric owners, one time for
 * all, so that the same entries in any order give the same bytes.
 *
 * @throws LayerError for a path that is not absolute and normal, stands twice, lies below something that is no
 *   directory of the layer, has a whiteout's name in it, or has set-id bits; nothing a layer says may surprise the node
 *   that unpacks it.
 */
export async function writeLayer(entries: readonly LayerEntry[], options: LayerOptions = {}): Promise<Layer> {
  const all = withParents(entries, options);
  const sorted = [...all, ...whiteouts(all, options)].sort(inArchiveOrder);
  const parts = await archiveEntries(sorted, options.mtimeSeconds ?? 0);
  const archive = Buffer.concat([parts, END_OF_ARCHIVE]);
  const bytes = gzipSync(archive, { level: GZIP_LEVEL });
  return { diffId: digestOf(archive), digest: digestOf(bytes), bytes, archiveBytes: archive.length };
}

function withParents(entries: readonly LayerEntry[], { below }: LayerOptions): LayerEntry[] {
  const byPath = new Map<string, LayerEntry>();
  for (const entry of entries) {
    check(entry);
    if (byPath.has(entry.path)) throw new LayerEntriesError(entry.path, 'stands twice');
    byPath.set(entry.path, entry);
  }
  for (const { path } of entries) {
    for (let parent = posix.dirname(path); parent !== '/'; parent = posix.dirname(parent)) {
      const there = byPath.get(parent);
      if (there === undefined) byPath.set(parent, parentEntry(parent, below?.(parent)));
      else if (there.type !== 'directory')
        throw new LayerEntriesError(path, `lies below ${parent}, which is a ${there.type}`);
    }
  }
  for (const entry of byPath.values()) {
    if (entry.type === 'hardlink' && byPath.get(entry.target)?.type !== 'file') {
      throw new LayerEntriesError(
        entry.path,
        `is a hard link to ${entry.target}, which is no file of the layer`,
      );
    }
  }
  return [...byPath.values()];
}

function parentEntry(path: string, there: BelowEntry | undefined): LayerEntry {
  const isThere = there?.kind === 'directory';
  const { mode, uid, gid, xattrs } = isThere
    ? there
    : { mode: PARENT_MODE, uid: 0, gid: 0, xattrs: undefined };
  return { type: 'directory', path, mode, uid, gid, ...(xattrs === undefined ? {} : { xattrs }) };
}

/**
 * Hides what lower layers have where a directory replaces something else, or the reverse. For readers of the OCI text
 * it says nothing new. libostree, by which bootc and rpm-ostree put layers on one another
 * (OSTREE_REPO_CHECKOUT_OVERWRITE_UNION_FILES), follows a link in the place of a directory, and fails over the rest;
 * but it minds whiteouts, before the other entries of a directory.
 */
function whiteouts(entries: readonly LayerEntry[], { below }: LayerOptions): LayerEntry[] {
  return entries.flatMap((entry): LayerEntry[] => {
    const there = below?.(entry.path);
    if (there === undefined || (there.kind === 'directory') === (entry.type === 'directory')) return [];
    const path = `${posix.dirname(entry.path)}/${WHITEOUT}${posix.basename(entry.path)}`;
    return [{ type: 'file', path, mode: 0o644, uid: 0, gid: 0, content: new Uint8Array() }];
  });
}

/**
 * A whiteout comes before what replaces the hidden, and a hard link after everything else: its target has to be there
 * (POSIX pax, "linkname").
 */
function inArchiveOrder(a: LayerEntry, b: LayerEntry): number {
  const rank = (entry: LayerEntry) => (entry.type === 'hardlink' ? 1 : 0);
  const [first, second] = [sortKey(a), sortKey(b)];
  return rank(a) - rank(b) || (first < second ? -1 : first > second ? 1 : 0);
}

function sortKey({ path }: LayerEntry): string {
  return path.replace(`/${WHITEOUT}`, '/\0');
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
    throw new LayerEntriesError(path, 'is no absolute path without "..", "." or empty parts');
  }
  // Also in a layer above others: it would delete the entry of the layers below.
  if (path.includes(`/${WHITEOUT}`)) throw new LayerEntriesError(path, 'would be read as a whiteout');
  const attributes =
    entry.type === 'file' || entry.type === 'directory' ? Object.keys(entry.xattrs ?? {}) : [];
  const odd = attributes.find((name) => name === '' || name.includes('=') || name.includes('\0'));
  if (odd !== undefined) {
    throw new LayerEntriesError(
      path,
      `an extended attribute can't be named ${JSON.stringify(odd)} in an archive`,
    );
  }
  if (entry.type === 'file' && (entry.mode & SET_ID_BITS) !== 0) {
    throw new LayerEntriesError(path, `mode ${entry.mode.toString(8)} sets user or group id on execution`);
  }
}

/** Two blocks of zeroes end an archive (POSIX ustar). */
export const END_OF_ARCHIVE = Buffer.alloc(1024);

/**
 * @param mtimeSeconds of every entry, since the epoch.
 * @returns the entries as they stand in an archive, in the order given; END_OF_ARCHIVE has to follow the last.
 */
export async function archiveEntries(entries: readonly LayerEntry[], mtimeSeconds: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let plain: Packed[] = [];
  const flush = async () => {
    pieces.push(await packEntries(plain));
    plain = [];
  };
  for (const entry of entries) {
    const header = { ...headerOf(entry), mtime: new Date(mtimeSeconds * 1000) };
    const content = entry.type === 'file' ? Buffer.from(entry.content) : undefined;
    const pax = paxHeaderOf(entry, header.name);
    if (pax === undefined) {
      plain.push({ header, content });
      continue;
    }
    // tar-stream writes PAX headers of text only, so this one is put in between what it writes.
    await flush();
    pieces.push(paxBlocks(pax.records, mtimeSeconds));
    plain.push({ header: { ...header, ...pax.header }, content });
    await flush();
  }
  await flush();
  return Buffer.concat(pieces);
}

interface Packed {
  readonly header: Partial<Header> & Pick<Header, 'name'>;
  readonly content: Buffer | undefined;
}

/** @returns an archive without its end. */
async function packEntries(entries: readonly Packed[]): Promise<Buffer> {
  const archive = pack();
  for (const { header, content } of entries) {
    if (content === undefined) archive.entry(header);
    else archive.entry(header, content);
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  return bytes.subarray(0, bytes.length - END_OF_ARCHIVE.length);
}

/**
 * @returns a mode that tar-stream writes as it is. It takes 0 for no mode, and would let everybody read such a file;
 *   the bit of a regular file (inode(7)) is not written.
 */
export function tarMode(mode: number): number {
  return mode | constants.S_IFREG;
}

function headerOf(entry: LayerEntry): Partial<Header> & Pick<Header, 'name'> {
  const name = entry.path.slice(1);
  switch (entry.type) {
    case 'file':
      return {
        name,
        type: 'file',
        mode: tarMode(entry.mode),
        uid: entry.uid,
        gid: entry.gid,
        size: entry.content.length,
      };
    case 'directory':
      return {
        name: `${name}/`,
        type: 'directory',
        mode: tarMode(entry.mode),
        uid: entry.uid,
        gid: entry.gid,
      };
    case 'symlink':
      return { name, type: 'symlink', linkname: entry.target, mode: 0o777, uid: entry.uid, gid: entry.gid };
    case 'hardlink':
      return { name, type: 'link', linkname: entry.target.slice(1), mode: 0o644, uid: 0, gid: 0 };
  }
}
