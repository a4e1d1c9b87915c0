import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { access, type FileHandle, lstat, open, readlink } from 'node:fs/promises';

/** What lies at one path of a directory tree, as far as ostree and an image can carry it. */
export type TreeEntry =
  | {
      readonly kind: 'file';
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** Of the content; for a file that is too large to be read, what stands for it and equals no digest. */
      readonly sha256: string;
    }
  | { readonly kind: 'directory'; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly kind: 'symlink'; readonly uid: number; readonly gid: number; readonly target: string }
  /** A device, pipe or socket: never in an image, only made by a running host. */
  | { readonly kind: 'special' };

const PERMISSION_BITS = 0o7777n;

/**
 * @param hashUpTo bytes: the content of a larger file is not read, and its size and time of change stand for it.
 * @returns what lies at the path itself (a link is not followed), or nothing when there is none.
 */
export async function readTreeEntry(path: string, hashUpTo?: number): Promise<TreeEntry | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(ignoreMissing);
  if (stats === undefined) return undefined;
  const ids = { uid: Number(stats.uid), gid: Number(stats.gid) };
  if (stats.isFile()) return readFileEntry(path, hashUpTo);
  if (stats.isDirectory()) return { kind: 'directory', mode: modeOf(stats), ...ids };
  if (stats.isSymbolicLink()) return { kind: 'symlink', ...ids, target: await readlink(path) };
  return { kind: 'special' };
}

/** What was a file a moment ago may be a link or a pipe by now: neither is followed, nor waited for. */
async function readFileEntry(
  path: string,
  hashUpTo = Number.POSITIVE_INFINITY,
): Promise<TreeEntry | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  await using handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(ignoreMissing);
  if (handle === undefined) return undefined;
  const stats = await handle.stat({ bigint: true });
  if (!stats.isFile()) return { kind: 'special' };
  const isTooLarge = Number(stats.size) > hashUpTo;
  return {
    kind: 'file',
    mode: modeOf(stats),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    sha256: isTooLarge ? `unread, ${stats.size} bytes of ${stats.mtimeNs}` : await sha256Of(handle, stats),
  };
}

function modeOf({ mode }: BigIntStats): number {
  return Number(mode & PERMISSION_BITS);
}

/** @returns whether something is at a path, links followed, that can be reached. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Turns "no such path" into undefined and throws everything else; for the catch of a file operation. */
export function ignoreMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}

/** @returns whether the error says that the path, or a directory on the way to it, is not there. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

/**
 * @returns whether both are the same thing for a reader of the tree: kind, content, mode and owner. Times don't count.
 */
export function sameEntry(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  return contentDigest(a) === contentDigest(b);
}

/** @returns whether both have the same kind and content, no matter who owns and may read them. */
export function sameContent(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  if (a?.kind === 'file' && b?.kind === 'file') return a.sha256 === b.sha256;
  if (a?.kind === 'symlink' && b?.kind === 'symlink') return a.target === b.target;
  return a?.kind === b?.kind;
}

/** Names a path's content; equal exactly when kind, content, mode and owner are equal. */
export type ContentDigest = string;

/** The content digest of a path that is not there. */
export const ABSENT: ContentDigest = 'absent';

/** @returns the content digest of what lies at a path. */
export function contentDigest(entry: TreeEntry | undefined): ContentDigest {
  if (entry === undefined) return ABSENT;
  switch (entry.kind) {
    case 'file':
      return `file ${octal(entry.mode)} ${entry.uid}:${entry.gid} sha256:${entry.sha256}`;
    case 'directory':
      return `directory ${octal(entry.mode)} ${entry.uid}:${entry.gid}`;
    case 'symlink':
      return `symlink ${entry.uid}:${entry.gid} ${entry.target}`;
    case 'special':
      return 'special';
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

const READ_AT_ONCE = 256n * 1024n;

async function sha256Of(handle: FileHandle, { size }: BigIntStats): Promise<string> {
  const hash = createHash('sha256');
  if (size <= READ_AT_ONCE) hash.update(await readWhole(handle, Number(size)));
  else for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk);
  return hash.digest('hex');
}

/** One read more than a file's size finds its end; FileHandle.readFile takes several. */
async function readWhole(handle: FileHandle, size: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(size + 1);
  const { bytesRead } = await handle.read(buffer, 0, size + 1, 0);
  return bytesRead === size ? buffer.subarray(0, size) : handle.readFile();
}
