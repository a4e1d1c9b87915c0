import { constants, type Stats } from 'node:fs';
import {
  chown,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { hasCode, namingFile, PathError } from './host-file-error.ts';
import { ignoreMissing, readTreeEntry, type TreeEntry } from './tree-entry.ts';

export interface NumericOwner {
  readonly uid: number;
  readonly gid: number;
}

export interface Attributes extends NumericOwner {
  readonly mode: number;
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
/** Node has no name for it. It is the same number on every architecture that Node runs on under Linux (open(2)). */
const O_PATH = 0o10000000;

/**
 * A directory of a host's tree, held open. What is done to a name in it is done in this directory, wherever the path
 * that led here leads by now: Node has no openat(2), so every name is reached below `/proc/self/fd`, which is the same
 * thing (proc_pid_fd(5)). No link is ever followed, and owner and mode are set on handles of what was created.
 *
 * Errors name paths as the host's admin knows them.
 */
export class HostDirectory implements AsyncDisposable {
  /** As the host knows it (`/etc/systemd`). */
  readonly name: string;
  /** Whether this directory and every one above it, up to the root, can be written to by root alone. */
  readonly isRootsOwn: boolean;
  readonly #handle: FileHandle;
  readonly #inUse = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @param parent absent for one that nobody but root can change the path of. */
  private constructor(name: string, handle: FileHandle, stats: Stats, parent?: HostDirectory) {
    this.name = name;
    this.#handle = handle;
    this.isRootsOwn = parent?.isRootsOwn !== false && isRootsAlone(stats);
  }

  /**
   * Opens a directory by a path that nobody but root can change: that of a root, or of a mount in one.
   *
   * @param place where it lies; links are followed. @param name what the host calls it. @throws {HostFileError}
   */
  static async open(place: string, name: string): Promise<HostDirectory> {
    return HostDirectory.#open(place, name);
  }

  /** Below a parent, what has become a link is not followed. */
  static async #open(place: string, name: string, parent?: HostDirectory): Promise<HostDirectory> {
    return namingFile(name, async () => {
      const handle = await open(place, O_RDONLY | O_DIRECTORY | (parent === undefined ? 0 : O_NOFOLLOW));
      try {
        return new HostDirectory(name, handle, await handle.stat(), parent);
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  /** Waits for what is still done in it: the number of a closed handle may be another directory's a moment later. */
  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#inUse.size > 0) await Promise.allSettled(this.#inUse);
    this.#isClosed = true;
    await this.#handle.close();
  }

  async #use<T>(name: string, act: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new PathError(`${name}: ${this.name} is no longer open`);
    const used = namingFile(name, act);
    this.#inUse.add(used);
    try {
      return await used;
    } finally {
      this.#inUse.delete(used);
    }
  }

  /**
   * @returns the directory of this name; undefined when there is none. @throws {PathError} when it is something else.
   */
  async child(base: string): Promise<HostDirectory | undefined> {
    const name = this.#nameOf(base);
    try {
      return await this.#use(name, () => HostDirectory.#open(this.#at(base), name, this));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      if (!hasCode(error, 'ENOTDIR', 'ELOOP')) throw error;
      const isLink = (await this.stat(base))?.isSymbolicLink() === true;
      throw new PathError(`${name}: expected a directory, found ${isLink ? 'a symbolic link' : 'none'}`);
    }
  }

  /** @returns what fstat(2) has of the directory itself. */
  async stats(): Promise<Stats> {
    return this.#use(this.name, () => this.#handle.stat());
  }

  /** @returns what lstat(2) has; undefined when there is nothing. */
  async stat(base: string): Promise<Stats | undefined> {
    return this.#use(this.#nameOf(base), () => lstat(this.#at(base)).catch(ignoreMissing));
  }

  async readLink(base: string): Promise<string> {
    return this.#use(this.#nameOf(base), () => readlink(this.#at(base)));
  }

  /** @returns the names in it. */
  async list(): Promise<string[]> {
    return this.#use(this.name, () => readdir(`/proc/self/fd/${this.#handle.fd}`));
  }

  /** @param hashUpTo see readTreeEntry. @returns what lies at the name; undefined when there is nothing. */
  async entry(base: string, hashUpTo?: number): Promise<TreeEntry | undefined> {
    return this.#use(this.#nameOf(base), () => readTreeEntry(this.#at(base), hashUpTo));
  }

  /**
   * @returns a file's bytes; undefined when there is no file. @param limit bytes; undefined is returned for a larger
   * file.
   */
  async read(base: string, limit: number): Promise<Buffer | undefined> {
    return this.#use(this.#nameOf(base), async () => {
      // Opening must not block on a pipe; a link counts as absent (ELOOP).
      await using handle = await open(this.#at(base), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(
        (error: unknown) => {
          if (hasCode(error, 'ENOENT', 'ELOOP', 'ENXIO')) return undefined;
          throw error;
        },
      );
      if (handle === undefined) return undefined;
      const stats = await handle.stat();
      return stats.isFile() && stats.size <= limit ? await handle.readFile() : undefined;
    });
  }

  /**
   * Puts a file at a name, whole or not at all, in place of what is no directory there. What was there stays as it is
   * under its other names: nothing is ever written through a hard link.
   *
   * @param write writes the content to a handle of the new file.
   */
  async replaceFile(
    base: string,
    write: (handle: FileHandle) => Promise<void>,
    attributes?: Attributes,
  ): Promise<void> {
    await this.#replace(base, async (temporary) => {
      await using handle = await open(this.#at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      await write(handle);
      if (attributes !== undefined) {
        // chown(2) clears setuid and setgid, so the mode comes after.
        await handle.chown(attributes.uid, attributes.gid);
        await handle.chmod(attributes.mode);
      }
      await handle.sync();
    });
  }

  /**
   * Puts a copy of a file at a name, as replaceFile, with its extended attributes: among them are capabilities, which
   * Node can't set.
   *
   * @param source an open file. @param verify throws when the copy is not what was wanted; then nothing is replaced.
   */
  async replaceWithCopy(
    base: string,
    source: FileHandle,
    {
      attributes,
      verify,
    }: { readonly attributes: Attributes; readonly verify: (copy: FileHandle) => Promise<void> },
  ): Promise<void> {
    await this.#replace(base, async (temporary) => {
      await using handle = await open(this.#at(temporary), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      // The times of an image's files are all alike, and by them systemd and others tell that a file has changed.
      const options = ['--preserve=all', '--no-preserve=timestamps'];
      await this.#copy(base, [outside(source), outside(handle)], options);
      await verify(handle);
      const { uid, gid, mode } = await handle.stat();
      // Only if they differ: chown(2) also clears capabilities.
      if (uid !== attributes.uid || gid !== attributes.gid) {
        await handle.chown(attributes.uid, attributes.gid);
        await handle.chmod(attributes.mode);
      } else if ((mode & 0o7777) !== attributes.mode) {
        await handle.chmod(attributes.mode);
      }
      await handle.sync();
    });
  }

  /** Puts a symbolic link at a name, in place of what is no directory there. */
  async replaceLink(base: string, target: string, owner: NumericOwner): Promise<void> {
    await this.#replace(base, async (temporary) => {
      await symlink(target, this.#at(temporary));
      await using handle = await open(this.#at(temporary), O_PATH | O_NOFOLLOW);
      if (!(await handle.stat()).isSymbolicLink()) {
        throw new PathError(`${this.#nameOf(base)}: changed by somebody else while it was written`);
      }
      // lchown(2) would take a path again; below /proc/self/fd the link itself is meant, and it is not followed.
      await chown(`/proc/self/fd/${handle.fd}`, owner.uid, owner.gid);
    });
  }

  /**
   * Makes a name one more name of a file.
   *
   * @param from the directory that has the file as `source`.
   * @throws {PathError} when it is no file, or is swapped for another meanwhile.
   */
  async replaceHardLink(base: string, from: HostDirectory, source: string): Promise<void> {
    const before = await from.stat(source);
    if (before?.isDirectory() === true || before === undefined) {
      throw new PathError(`${this.#nameOf(base)}: ${from.#nameOf(source)} is no file that it can share`);
    }
    await this.#replace(base, async (temporary) => {
      await link(from.#at(source), this.#at(temporary));
      const linked = await lstat(this.#at(temporary));
      if (linked.ino !== before.ino || linked.dev !== before.dev) {
        throw new PathError(`${from.#nameOf(source)}: changed by somebody else while it was linked`);
      }
    });
  }

  /**
   * Ensures that a directory of this name is there, and whose it is.
   *
   * @param ifThere what is done to one that is there already: it gets these attributes, or stays as it is.
   * @throws {PathError} when something else is there.
   */
  async makeDirectory(
    base: string,
    attributes: Attributes,
    ifThere: 'adjust' | 'leave' = 'adjust',
  ): Promise<void> {
    const isNew = await this.#use(this.#nameOf(base), () =>
      mkdir(this.#at(base), { mode: 0o700 }).then(
        () => true,
        (error: unknown) => {
          if (hasCode(error, 'EEXIST')) return false;
          throw error;
        },
      ),
    );
    if (!isNew && ifThere === 'leave') {
      await (await this.child(base))?.[Symbol.asyncDispose]();
      return;
    }
    await using directory = await this.child(base);
    if (directory === undefined) {
      throw new PathError(`${this.#nameOf(base)}: removed by somebody else while it was made`);
    }
    await directory.#giveTo(attributes, this);
  }

  /** Who can rename what lies beside it must not be given a directory of root's by another name. */
  async #giveTo({ uid, gid, mode }: Attributes, parent: HostDirectory): Promise<void> {
    await this.#use(this.name, async () => {
      const stats = await this.#handle.stat();
      const givesAway = isRoots(stats.uid) && !isRoots(uid);
      if (!parent.isRootsOwn && givesAway && (await this.list()).length > 0) {
        throw new PathError(
          `${this.name}: belongs to root and is not empty; it is not given to uid ${uid} in a directory that others can write to`,
        );
      }
      await this.#handle.chown(uid, gid);
      await this.#handle.chmod(mode);
    });
  }

  /** Removes what is no directory. @throws {HostFileError} also when there is nothing. */
  async remove(base: string): Promise<void> {
    await this.#use(this.#nameOf(base), () => unlink(this.#at(base)));
  }

  /** Removes an empty directory. @throws {HostFileError} also when there is none, or something is in it. */
  async removeDirectory(base: string): Promise<void> {
    await this.#use(this.#nameOf(base), () => rmdir(this.#at(base)));
  }

  /** Removes what a killed write of a name left behind. */
  async removeTemporary(base: string): Promise<void> {
    // Looked at first: a file system that is read-only refuses to remove even what is not there.
    if ((await this.stat(temporaryName(base))) === undefined) return;
    await this.#use(this.#nameOf(base), () => unlink(this.#at(temporaryName(base))).catch(ignoreMissing));
  }

  /**
   * Copies a file or link to a place that is root's alone, with owner, mode, times and extended attributes, durably
   * (cp(1)).
   */
  async copyTo(base: string, place: string): Promise<void> {
    // cp opens a file with O_NOFOLLOW and checks that it is the one it saw.
    await this.#copy(base, [outside(this.#handle, base), place], ['--archive', '--remove-destination']);
    const copy = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: unknown) => {
      if (hasCode(error, 'ELOOP', 'ENXIO')) return undefined;
      throw error;
    });
    try {
      // A device, pipe or socket has nothing to be synced (fsync(2), EINVAL).
      if ((await copy?.stat())?.isFile() === true) await copy?.sync();
    } finally {
      await copy?.close();
    }
    await using directory = await HostDirectory.open(path.dirname(place), path.dirname(place));
    await directory.sync();
  }

  /** Brings such a copy to a name, in place of what is no directory there. @param place root's alone. */
  async copyFrom(base: string, place: string): Promise<void> {
    const stats = await lstat(place);
    if (stats.isSymbolicLink()) return this.replaceLink(base, await readlink(place), stats);
    if (stats.isFile()) {
      return this.replaceFile(base, (handle) =>
        this.#copy(base, [place, outside(handle)], ['--preserve=all']),
      );
    }
    // cp(1) makes devices, pipes and sockets by path.
    if (!this.isRootsOwn) {
      throw new PathError(
        `${this.#nameOf(base)}: a device, pipe or socket is not brought back to a directory that others can write to`,
      );
    }
    await this.#replace(base, (temporary) =>
      this.#copy(base, [place, outside(this.#handle, temporary)], ['--archive']),
    );
  }

  async #copy(base: string, operands: readonly [string, string], options: readonly string[]): Promise<void> {
    const { failed, stderr } = await execa(
      'cp',
      [...options, '--reflink=auto', '--no-target-directory', '--', ...operands],
      { stdin: 'ignore', stdout: 'ignore', reject: false },
    );
    if (!failed) return;
    const why = stderr === undefined || stderr === '' ? 'cp could not be started' : stderr;
    throw new Error(`${this.#nameOf(base)}: could not be copied: ${why.replace(/^cp: .*: /, '')}`);
  }

  /** Makes its entries durable (fsync(2)). */
  async sync(): Promise<void> {
    await this.#use(this.name, () => this.#handle.sync());
  }

  /** Under another name first, so that readers find the old or the new. */
  async #replace(base: string, make: (temporary: string) => Promise<void>): Promise<void> {
    const temporary = temporaryName(base);
    await this.#use(this.#nameOf(base), async () => {
      const removeTemporary = () => unlink(this.#at(temporary)).catch(ignoreMissing);
      await removeTemporary();
      try {
        await make(temporary);
        await rename(this.#at(temporary), this.#at(base));
      } finally {
        // rename(2) does nothing when both are hard links to the same file.
        await removeTemporary();
      }
    });
  }

  #nameOf(base: string): string {
    return path.posix.join(this.name, base);
  }

  #at(base: string): string {
    if (base === '' || base === '.' || base === '..' || base.includes('/')) {
      throw new PathError(`${this.name}: ${JSON.stringify(base)} is not the name of a file in it`);
    }
    return `/proc/self/fd/${this.#handle.fd}/${base}`;
  }
}

const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };

/** An ordinary user's daemon, in tests, has a tree of its own user. */
function isRoots(uid: number): boolean {
  return uid === 0 || uid === own.uid;
}

/**
 * @returns whether root alone can write to a directory. Access control lists that let others show in the bits of the
 * group (acl(5)).
 */
export function isRootsAlone({ uid, gid, mode }: Attributes): boolean {
  const isOwnGroup = own.uid !== 0 && gid === own.gid;
  return isRoots(uid) && (mode & 0o002) === 0 && ((mode & 0o020) === 0 || isOwnGroup);
}

/** @returns what leads another process to what this one holds open. */
function outside({ fd }: FileHandle, base = ''): string {
  return path.posix.join(`/proc/${process.pid}/fd/${fd}`, base);
}

const TEMPORARY_PREFIX = '.shale-new.';

/** @returns the name under which a file is written before it takes its place, in the same directory. */
function temporaryName(name: string): string {
  // A name may have 255 bytes (NAME_MAX); longer names are distinguished by their ends.
  return `${TEMPORARY_PREFIX}${name.slice(-60)}`;
}

/** @returns whether a name is one that a killed write left behind. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith(TEMPORARY_PREFIX);
}
