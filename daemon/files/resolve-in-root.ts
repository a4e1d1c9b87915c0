import { lstat, readlink } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from './tree-entry.ts';

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/**
 * Finds where a path of a root lies, following links of its parent directories as a process chrooted there would: an
 * absolute target starts at the root and `..` does not leave it. The last component is not followed. Hosts rely on such
 * links (`/home -> var/home`), and a hostile one must lead nowhere else.
 *
 * @param root the root directory, itself trusted.
 * @param name absolute path within the root.
 * @returns the path outside, or nothing when a parent is missing or is no directory.
 * @throws TypeError when the path isn't absolute; Error when there are too many links.
 */
export async function resolveInRoot(root: string, name: string): Promise<string | undefined> {
  if (!name.startsWith('/')) throw new TypeError(`${JSON.stringify(name)} is not an absolute path`);
  const pending = name.split('/').filter((part) => part !== '' && part !== '.');
  let current = '/';
  let links = 0;
  while (pending.length > 0) {
    const part = pending.shift() ?? '';
    const next = part === '..' ? path.dirname(current) : path.join(current, part);
    if (pending.length === 0) return path.join(root, next);
    const stats = await lstat(path.join(root, next)).catch(ignoreMissing);
    if (stats?.isSymbolicLink() === true) {
      links += 1;
      if (links > MAX_LINKS) throw new Error(`${name}: more than ${MAX_LINKS} symbolic links in ${root}`);
      const target = await readlink(path.join(root, next));
      pending.unshift(...target.split('/').filter((step) => step !== '' && step !== '.'));
      if (target.startsWith('/')) current = '/';
    } else if (stats?.isDirectory() === true) {
      current = next;
    } else {
      return undefined;
    }
  }
  return path.join(root, current);
}

/**
 * Finds what a path of a root leads to, as resolveInRoot, with the last component followed, too: links of the node lead
 * to files of the node, wherever its root is mounted.
 *
 * @returns the path outside, which is no link; nothing when a parent is missing, or links lead to each other.
 */
export async function followInRoot(root: string, name: string): Promise<string | undefined> {
  let current = name;
  for (let links = 0; links <= MAX_LINKS; links += 1) {
    const place = await resolveInRoot(root, current);
    const stats = place === undefined ? undefined : await lstat(place).catch(ignoreMissing);
    if (place === undefined || stats?.isSymbolicLink() !== true) return place;
    current = path.posix.resolve(path.posix.dirname(current), await readlink(place));
  }
  return undefined;
}
