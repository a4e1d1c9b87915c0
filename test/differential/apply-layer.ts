import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { posix } from 'node:path';
import type { Attributes, TreeItem } from './tree-item.ts';

/**
 * Applies a layer to a directory by the words of the OCI image specification (layer.md, "Applying Changesets"), as
 * umoci does: whiteouts hide lower layers only; where both are directories the attributes are the entry's, anything
 * else that is there is removed first; links on the way to an entry are followed within the root; parents that no layer
 * has are root's, 0755.
 */
export function applyLayer(root: string, items: readonly TreeItem[]): void {
  for (const item of items) if (item.type === 'whiteout' || item.type === 'opaque') takeAway(root, item);
  const capable: string[] = [];
  for (const item of items) {
    if (item.type === 'whiteout' || item.type === 'opaque') continue;
    const place = placeOf(root, item.path);
    put(root, place, item);
    if (item.type === 'file' && item.capable === true) capable.push(place);
  }
  setCapable(capable);
}

function takeAway(root: string, { type, path }: TreeItem): void {
  const place = placeOf(root, path);
  if (type === 'whiteout') rmSync(place, { recursive: true, force: true });
  else if (isDirectory(place)) {
    for (const name of readdirSync(place)) rmSync(posix.join(place, name), { recursive: true, force: true });
  }
}

function put(root: string, place: string, item: TreeItem): void {
  const there = lstatSync(place, { throwIfNoEntry: false });
  if (there !== undefined && !(there.isDirectory() && item.type === 'directory')) {
    rmSync(place, { recursive: true, force: true });
  }
  switch (item.type) {
    case 'file':
      writeFileSync(place, Buffer.from(item.text, 'latin1'));
      setAttributes(place, item);
      return;
    case 'directory':
      if (there?.isDirectory() !== true) mkdirSync(place);
      setAttributes(place, item);
      return;
    case 'symlink':
      symlinkSync(item.target, place);
      lchownSync(place, item.uid, item.gid);
      return;
    case 'hardlink':
      linkSync(placeOf(root, item.target), place);
      return;
    case 'fifo':
      makeFifo(place);
  }
}

let fifo: string | undefined;

/** Node can't make one, and a process for each costs too much: all are names of one, which nobody changes. */
export function makeFifo(place: string): void {
  if (fifo === undefined) {
    fifo = posix.join(mkdtempSync(posix.join(tmpdir(), 'shale-fifo-')), 'fifo');
    execFileSync('mkfifo', [fifo]);
    process.once('exit', () => rmSync(posix.dirname(fifo ?? ''), { recursive: true, force: true }));
  }
  linkSync(fifo, place);
}

function setAttributes(place: string, { mode, uid, gid }: Attributes): void {
  // In this order: chown(2) clears set-id bits. A directory with setgid gives its group to what is made in it.
  lchownSync(place, uid, gid);
  chmodSync(place, mode);
}

const MAX_LINKS = 40;

/** @returns where a path lies in the root: links of its parents followed as if chrooted there, missing parents made. */
export function placeOf(root: string, path: string): string {
  const pending = path.split('/').filter((part) => part !== '');
  let current = '/';
  let links = 0;
  for (let step = pending.shift(); step !== undefined; step = pending.shift()) {
    if (step === '..') {
      current = posix.dirname(current);
      continue;
    }
    if (step === '.') continue;
    const next = posix.join(current, step);
    if (pending.length === 0) return root + next;
    const there = lstatSync(root + next, { throwIfNoEntry: false });
    if (there?.isSymbolicLink() === true) {
      links += 1;
      if (links > MAX_LINKS) throw new Error(`${path}: too many links on the way`);
      const target = readlinkSync(root + next);
      pending.unshift(...target.split('/').filter((part) => part !== ''));
      if (target.startsWith('/')) current = '/';
      continue;
    }
    if (there === undefined) {
      mkdirSync(root + next);
      chmodSync(root + next, 0o755);
    } else if (!there.isDirectory()) {
      unlinkSync(root + next);
      mkdirSync(root + next);
      chmodSync(root + next, 0o755);
    }
    current = next;
  }
  return root + current;
}

function isDirectory(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** setcap(8): Node can't set extended attributes. */
export function setCapable(places: readonly string[]): void {
  if (places.length > 0)
    execFileSync(
      'setcap',
      places.flatMap((place) => ['cap_net_raw=ep', place]),
      { env: SBIN },
    );
}

/** Where Debian has setcap(8) and getcap(8), which an ordinary PATH need not name. */
export const SBIN = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` };
