import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

/** What lies at one path of a directory tree, as far as ostree and an image can carry it. */
export type TreeEntry =
  | {
      readonly kind: 'file';
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly sha256: string;
    }
  | { readonly kind: 'directory'; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly kind: 'symlink'; readonly uid: number; readonly gid: number; readonly target: string }
  /** A device, pipe or socket: never in an image, only made by a running host. */
  | { readonly kind: 'special' };

const PERMISSION_BITS = 0o7777n;

/** @returns what lies at the path itself (a link is not followed), or nothing when there is none. */
export async function readTreeEntry(path: string): Promise<TreeEntry | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(ignoreMissing);
  if (stats === undefined) return undefined;
  const uid = Number(stats.uid);
  const gid = Number(stats.gid);
  const mode = Number(stats.mode & PERMISSION_BITS);
  if (stats.isFile()) return { kind: 'file', mode, uid, gid, sha256: await sha256OfFile(path) };
  if (stats.isDirectory()) return { kind: 'directory', mode, uid, gid };
  if (stats.isSymbolicLink()) return { kind: 'symlink', uid, gid, target: await readlink(path) };
  return { kind: 'special' };
}

/** Turns "no such path" into undefined and throws everything else; for the catch of a file operation. */
export function ignoreMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}

/** @returns whether the error says that the path, or a directory on the way to it, is not there. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

/** @returns whether both are the same thing for a reader of the tree: kind, content, mode and owner. Times don't count. */
export function sameEntry(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  return contentDigest(a) === contentDigest(b);
}

/** @returns whether both have the same kind and content, whoever owns them and whoever may read them. */
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

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
