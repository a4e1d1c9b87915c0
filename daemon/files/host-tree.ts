import type { Stats } from 'node:fs';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { HostDirectory, isRootsAlone } from './host-directory.ts';
import { PathError } from './host-file-error.ts';
import { ignoreMissing, type TreeEntry } from './tree-entry.ts';

/** A tree that a config speaks of. */
export interface TreeRoots {
  /** The host's root, or a staged deployment's root before a reboot. */
  readonly root: string;
  /** The root that has /var when `root` is a staged deployment: the host's. */
  readonly varRoot?: string | undefined;
}

/** Where a path of a config lies, the links of its parents followed. */
export interface Location {
  /** What the tree calls it, without links. */
  readonly name: string;
  /** Parents that are no directories yet, outermost first. */
  readonly missingParents: readonly string[];
  /** The name of a parent that is there but no directory; nothing can be written until it is gone. */
  readonly blockedBy: string | undefined;
}

/** By name without links: what is about to lie there, whatever does now; undefined where nothing will. */
export type Coming = ReadonlyMap<string, TreeEntry | undefined>;

const NOTHING_COMES: Coming = new Map();

/** How far a search for a path has come. */
interface Lookup {
  readonly pending: string[];
  readonly missingParents: string[];
  current: string;
  links: number;
  blockedBy: string | undefined;
}

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/**
 * The directories of a tree, by name. Those on the way to the last one stay open, so that walking names in their order
 * costs little. Not for two at a time.
 *
 * Links are followed in one place alone, `locate`, and only in directories that root alone can write to: a host has
 * links of its own (`/home -> var/home`), and every other one may have been made to lead a process of root's astray.
 * Afterwards a path is opened by the name that was found, directory by directory, and a link that has come there since
 * is refused.
 */
export class HostTree implements AsyncDisposable {
  readonly roots: TreeRoots;
  readonly #rootsOpen = new Map<string, HostDirectory>();
  /** From the root to the last directory that was asked for, without the roots. */
  #chain: HostDirectory[] = [];
  #isClosed = false;

  constructor(roots: TreeRoots) {
    this.roots = roots;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const open = [...this.#chain.toReversed(), ...this.#rootsOpen.values()];
    this.#chain = [];
    this.#rootsOpen.clear();
    for (const directory of open) await directory[Symbol.asyncDispose]();
  }

  /**
   * @param name as `locate` found it: absolute, without links.
   * @returns the directory, open until another is asked for; undefined when it, or one above it, is missing.
   * @throws {PathError} when it, or one above it, is a link or a file.
   */
  async directory(name: string): Promise<HostDirectory | undefined> {
    const names = namesTo(name);
    const differs = names.findIndex((each, index) => this.#chain[index]?.name !== each);
    await this.#closeFrom(differs < 0 ? names.length : differs);
    for (const next of names.slice(this.#chain.length)) {
      const above = this.#chain.at(-1);
      const base = path.posix.basename(next);
      const directory = above === undefined ? await this.#top(next) : await above.child(base);
      if (directory === undefined) return undefined;
      await this.#requireOpen(directory);
      this.#chain.push(directory);
    }
    return this.#chain.at(-1) ?? this.#root(this.roots.root);
  }

  /** @returns the directory that has a name. @throws {PathError} also when it is missing. */
  async parentOf(name: string): Promise<HostDirectory> {
    const directory = await this.#above(name);
    if (directory === undefined) {
      throw new PathError(`${name}: there is no directory ${path.posix.dirname(name)}`);
    }
    return directory;
  }

  /** @returns what lies at a name that `locate` found. @param hashUpTo see readTreeEntry. */
  async entry(name: string, hashUpTo?: number): Promise<TreeEntry | undefined> {
    return (await this.#parent(name))?.entry(path.posix.basename(name), hashUpTo);
  }

  /** @returns what lstat(2) has of a name that `locate` found. */
  async stat(name: string): Promise<Stats | undefined> {
    return (await this.#parent(name))?.stat(path.posix.basename(name));
  }

  /** What lies below something that is no directory is not there. */
  async #parent(name: string): Promise<HostDirectory | undefined> {
    return this.#above(name).catch(ignoreUnreachable);
  }

  /** A staged deployment need not have a directory /var. */
  async #above(name: string): Promise<HostDirectory | undefined> {
    const parent = path.posix.dirname(name);
    return parent === '/' ? this.#root(rootOf(this.roots, name)) : this.directory(parent);
  }

  /** @returns where a path lies, as `locate`; undefined where it can't be reached. */
  async find(name: string): Promise<Location | undefined> {
    return this.locate(name).catch(ignoreUnreachable);
  }

  /**
   * Finds where a path lies. Links of its parents are followed as a process chrooted there would follow them, so none
   * leads outside; the last component is not followed.
   *
   * @param coming what is about to change on the way: a link that goes is not followed, one that comes is. A directory
   *   that nothing is to come for may stay, because something is in it.
   * @throws {PathError} when the path isn't absolute, has too many links on its way, or one that others than root could
   *   have made.
   */
  async locate(name: string, coming: Coming = NOTHING_COMES): Promise<Location> {
    if (!name.startsWith('/')) throw new PathError(`${JSON.stringify(name)} is not an absolute path`);
    const lookup: Lookup = {
      pending: stepsOf(name),
      current: '/',
      links: 0,
      missingParents: [],
      blockedBy: undefined,
    };
    for (let step = lookup.pending.shift(); step !== undefined; step = lookup.pending.shift()) {
      lookup.current = path.posix.join(lookup.current, step);
      if (lookup.pending.length === 0) break;
      if (lookup.current !== '/') await this.#advance(lookup, coming);
      if (lookup.links > MAX_LINKS) {
        throw new PathError(`${name}: more than ${MAX_LINKS} symbolic links on the way`);
      }
    }
    return { name: lookup.current, missingParents: lookup.missingParents, blockedBy: lookup.blockedBy };
  }

  /**
   * Takes the name that a lookup has come to for a directory, a link to follow, or something that is still to become a
   * directory.
   */
  async #advance(lookup: Lookup, coming: Coming): Promise<void> {
    const { current, missingParents } = lookup;
    const isChanging = coming.has(current);
    // What is open is a directory.
    if (!isChanging && missingParents.length === 0 && this.#chain.some(({ name }) => name === current))
      return;
    const isBelowMissing = missingParents.some((parent) => current.startsWith(`${parent}/`));
    const stats = isBelowMissing ? undefined : await this.#statOf(current);
    const next = coming.get(current);
    if (next?.kind === 'symlink') {
      if (!isBelowMissing) await this.#requireRootsOwn(current, coming);
      follow(lookup, next.target);
    } else if (!isChanging && stats?.isSymbolicLink() === true) {
      await this.#requireRootsOwn(current, coming);
      follow(lookup, await this.#linkAt(current));
    } else if (stats?.isDirectory() !== true || isNoDirectory(next)) {
      missingParents.push(current);
      if (stats !== undefined || isNoDirectory(next)) lookup.blockedBy ??= current;
    }
  }

  /** A user who can write to the directories on the way to a link can lead it elsewhere. */
  async #requireRootsOwn(name: string, coming: Coming): Promise<void> {
    const directory = await this.#parent(name);
    const isRootsOwn = directory === undefined || directory.isRootsOwn;
    if (isRootsOwn && !isOpened(name, coming)) return;
    throw new PathError(
      `${name} is a symbolic link, and not only root can write to the directories on the way to it: such a link is not followed. Remove it, or name the path that it leads to`,
    );
  }

  async #linkAt(name: string): Promise<string> {
    return (await this.parentOf(name)).readLink(path.posix.basename(name));
  }

  /** A mount counts as the directory that it is. */
  async #statOf(name: string): Promise<Stats | undefined> {
    const stats = await this.stat(name);
    if (stats?.isSymbolicLink() !== true || (await this.#mountAt(name)) === undefined) return stats;
    return (await this.directory(name))?.stats();
  }

  async #top(name: string): Promise<HostDirectory | undefined> {
    const place = await this.#mountAt(name);
    if (place !== undefined) return HostDirectory.open(place, name);
    return (await this.#root(rootOf(this.roots, name))).child(path.posix.basename(name));
  }

  /**
   * A directory node has links where a host has mounts (workshop/sandbox/node/directory-host.ts), and what lies below a
   * mount is called by the mount's name. Such a link is relative and stays in the root; any other is a link.
   *
   * @returns where it leads.
   */
  async #mountAt(name: string): Promise<string | undefined> {
    if (!MOUNTS.has(name)) return undefined;
    const root = await this.#root(rootOf(this.roots, name));
    if ((await root.stat(path.posix.basename(name)))?.isSymbolicLink() !== true) return undefined;
    const inside = await realpath(rootOf(this.roots, name));
    const real = await realpath(path.join(inside, name)).catch(ignoreMissing);
    return real?.startsWith(`${inside}/`) === true ? real : undefined;
  }

  async #root(place: string): Promise<HostDirectory> {
    const opened = this.#rootsOpen.get(place);
    if (opened !== undefined) return opened;
    const root = await HostDirectory.open(place, '/');
    await this.#requireOpen(root);
    this.#rootsOpen.set(place, root);
    return root;
  }

  /** A caller that did not wait for an answer would keep a directory open for ever. */
  async #requireOpen(directory: HostDirectory): Promise<void> {
    if (!this.#isClosed) return;
    await directory[Symbol.asyncDispose]();
    throw new PathError(`${directory.name}: the tree is no longer open`);
  }

  async #closeFrom(index: number): Promise<void> {
    for (const directory of this.#chain.splice(index)) {
      await directory[Symbol.asyncDispose]();
    }
  }
}

function follow(lookup: Lookup, target: string): void {
  lookup.links += 1;
  lookup.pending.unshift(...stepsOf(target));
  lookup.current = target.startsWith('/') ? '/' : path.posix.dirname(lookup.current);
}

/** @returns whether a directory above a name is about to become writable by others than root. */
function isOpened(name: string, coming: Coming): boolean {
  for (let above = path.posix.dirname(name); above !== '/'; above = path.posix.dirname(above)) {
    const next = coming.get(above);
    if (next?.kind === 'directory' && !isRootsAlone(next)) return true;
  }
  return false;
}

function isNoDirectory(entry: TreeEntry | undefined): boolean {
  return entry !== undefined && entry.kind !== 'directory';
}

const MOUNTS: ReadonlySet<string> = new Set(['/etc', '/var']);

/** @returns whether a path is state, which lies in the root that has /var. @param name without links. */
function isState(name: string): boolean {
  return name === '/var' || name.startsWith('/var/');
}

/** @returns the root of a tree that has a path. @param name without links. */
export function rootOf({ root, varRoot = root }: TreeRoots, name: string): string {
  return isState(name) ? varRoot : root;
}

function stepsOf(name: string): string[] {
  return name.split('/').filter((part) => part !== '' && part !== '.');
}

/** @returns the names of the directories from below the root to this one. */
function namesTo(name: string): string[] {
  const parts = name.split('/').filter((part) => part !== '');
  if (!name.startsWith('/') || parts.some((part) => part === '.' || part === '..')) {
    throw new PathError(`${JSON.stringify(name)} is not an absolute path in its simplest form`);
  }
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
}

function ignoreUnreachable(error: unknown): undefined {
  if (!(error instanceof PathError)) throw error;
}
