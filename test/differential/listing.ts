import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  type Stats,
  symlinkSync,
} from 'node:fs';
import { posix } from 'node:path';
import { by } from '../../api/order.ts';
import { makeFifo, SBIN, setCapable } from './apply-layer.ts';
import { formatAttributes } from './tree-item.ts';

/** What a tree has, by absolute path: each thing as text, which is equal where everything that a node can notice is. */
export type Listing = ReadonlyMap<string, string>;

const SHORT = 60;

interface ListOptions {
  /** Whether a path is left out, with all below. */
  readonly skip: (path: string) => boolean;
  readonly capabilities: boolean;
  /** Whether it matters that a path is one of several names of a file. */
  readonly countsNames?: (path: string) => boolean;
}

/**
 * @param root of the tree.
 * @returns type, mode, owner, contents, target, hard links and capabilities of everything below the root.
 */
export function listTree(
  root: string,
  { skip, capabilities, countsNames = () => true }: ListOptions,
): Listing {
  const found = new Map<string, { readonly stats: Stats; readonly path: string }>();
  const walk = (above: string) => {
    for (const name of readdirSync(root + above)) {
      const path = posix.join(above, name);
      if (skip(path)) continue;
      const stats = lstatSync(root + path);
      found.set(path, { stats, path });
      if (stats.isDirectory()) walk(path);
    }
  };
  walk('/');
  const linked = Map.groupBy(
    [...found.values()].filter(
      ({ stats, path }) => stats.nlink > 1 && !stats.isDirectory() && countsNames(path),
    ),
    ({ stats }) => `${stats.dev} ${stats.ino}`,
  );
  const capable = capabilities ? capableIn(root) : new Set<string>();
  const lines = [...found.values()].map(({ path, stats }): [string, string] => {
    const others = (countsNames(path) ? (linked.get(`${stats.dev} ${stats.ino}`) ?? []) : [])
      .map((other) => other.path)
      .filter((other) => other !== path);
    const names = others.length === 0 ? '' : `, the same file as ${others.sort().join(', ')}`;
    return [path, `${describe(root + path, stats)}${capable.has(path) ? ', cap_net_raw' : ''}${names}`];
  });
  return new Map(lines.sort(by(([path]) => path)));
}

function describe(place: string, stats: Stats): string {
  const mode = stats.mode & 0o7777;
  const { uid, gid } = stats;
  if (stats.isFile())
    return `file ${formatAttributes({ mode, uid, gid })} ${formatContents(readFileSync(place))}`;
  if (stats.isDirectory()) return `directory ${formatAttributes({ mode, uid, gid })}`;
  if (stats.isSymbolicLink()) return `symlink ${uid}:${gid} -> ${readlinkSync(place)}`;
  return 'special';
}

/** @returns what a listing has of a file's contents. */
export function formatContents(contents: Uint8Array): string {
  if (contents.length <= SHORT) return JSON.stringify(Buffer.from(contents).toString('latin1'));
  return `${contents.length} bytes ${createHash('sha256').update(contents).digest('hex').slice(0, 12)}`;
}

function capableIn(root: string): ReadonlySet<string> {
  const out = execFileSync('getcap', ['-r', root], { env: SBIN, encoding: 'utf8' });
  const lines = out.split('\n').filter((line) => line.includes('cap_net_raw=ep'));
  return new Set(lines.map((line) => line.slice(root.length, line.lastIndexOf(' '))));
}

/**
 * Copies a tree with modes, owners, links, hard links and capabilities, as `cp -a`.
 *
 * @param from a directory. @param to where it is to be; must not be there.
 */
export function copyTree(
  from: string,
  to: string,
  capabilities: boolean,
  { hardLinks } = { hardLinks: true },
): void {
  const inodes = new Map<string, string>();
  const copy = (source: string, target: string) => {
    const stats = lstatSync(source);
    const key = `${stats.dev} ${stats.ino}`;
    const other = hardLinks && stats.nlink > 1 && !stats.isDirectory() ? inodes.get(key) : undefined;
    if (other !== undefined) {
      linkSync(other, target);
      return;
    }
    inodes.set(key, target);
    copyOne(source, target, stats);
    if (!stats.isDirectory()) return;
    for (const name of readdirSync(source)) copy(posix.join(source, name), posix.join(target, name));
  };
  copy(from, to);
  if (capabilities) setCapable([...capableIn(from)].map((path) => to + path));
}

function copyOne(source: string, target: string, stats: Stats): void {
  if (stats.isDirectory()) mkdirSync(target);
  else if (stats.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
  else if (stats.isFile()) copyFileSync(source, target);
  else makeFifo(target);
  lchownSync(target, stats.uid, stats.gid);
  if (!stats.isSymbolicLink()) chmodSync(target, stats.mode & 0o7777);
}

/** Where two trees differ: what each has, or nothing. */
export interface Difference {
  readonly path: string;
  readonly expected: string | undefined;
  readonly found: string | undefined;
}

/** @returns where two listings differ, by path. */
export function differences(expected: Listing, found: Listing): readonly Difference[] {
  const paths = [...new Set([...expected.keys(), ...found.keys()])].sort();
  return paths
    .map((path) => ({ path, expected: expected.get(path), found: found.get(path) }))
    .filter((each) => each.expected !== each.found);
}

/** @returns where two trees differ, in a line. */
export function formatDifference({ path: name, expected, found }: Difference): string {
  return `${name}: expected ${expected ?? 'nothing'}, found ${found ?? 'nothing'}`;
}
