import { posix } from 'node:path';
import { by } from '../api/order.ts';
import type { ImageFile, ImageFiles } from './base-tree.ts';
import { elfNeeds } from './elf.ts';

/** A file of Shale's image that comes from its base. */
export interface SystemFile extends ImageFile {
  /** Where it lies in Shale's image: as the loader looks for it. */
  readonly name: string;
}

/** The same as in container/prepare-root, which says what for. */
export const PROGRAMS: readonly string[] = ['nsenter', 'cp', 'mount'];
const PROGRAM_DIRECTORIES = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];
/** What the C library loads by itself, to look names up; newer ones have it built in. */
const NAME_SERVICES = ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2'];
/** Debian's name of each architecture's libraries (multiarch), by Go's. */
const TRIPLETS: Readonly<Record<string, string>> = {
  amd64: 'x86_64-linux-gnu',
  arm64: 'aarch64-linux-gnu',
};
const DPKG = '/var/lib/dpkg';

/** @returns whether the content of a file of the base is needed to choose the image's. */
export function isOfInterest(path: string): boolean {
  if (/\.so(?:\.[0-9.]+)?$/.test(path)) return /^\/(?:usr\/)?lib/.test(path);
  return (
    path === `${DPKG}/status` ||
    (path.startsWith(`${DPKG}/info/`) && path.endsWith('.list')) ||
    PROGRAMS.includes(posix.basename(path))
  );
}

/**
 * Chooses what Shale's image has of its base: the programs that Shale calls, with every library that they and Node
 * load.
 *
 * @param node Node's program, whose libraries are needed.
 * @returns the files, sorted by name.
 * @throws Error for a program or library that the base doesn't have.
 */
export function systemFiles(tree: ImageFiles, architecture: string, node: Buffer): SystemFile[] {
  const found = new Map<string, SystemFile>();
  const waiting: { readonly name: string; readonly content: Buffer }[] = [{ name: 'node', content: node }];
  const take = (name: string) => {
    const file = tree.file(name);
    if (file === undefined) return false;
    if (!found.has(name)) {
      found.set(name, { ...file, name });
      waiting.push({ name, content: file.content });
    }
    return true;
  };
  for (const program of PROGRAMS) {
    if (!PROGRAM_DIRECTORIES.some((directory) => take(`${directory}/${program}`))) {
      throw new Error(
        `the base image has no program ${program} for ${architecture}; expected one with util-linux and coreutils`,
      );
    }
  }
  const triplet = TRIPLETS[architecture] ?? '';
  const directories = [`/lib/${triplet}`, `/usr/lib/${triplet}`, '/lib64', '/usr/lib64', '/lib', '/usr/lib'];
  const takeLibrary = (library: string) =>
    [...found.keys()].some((name) => posix.basename(name) === library) ||
    directories.some((directory) => take(`${directory}/${library}`));
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { interpreter, libraries } = elfNeeds(next.content, next.name);
    if (interpreter !== undefined && !take(interpreter)) {
      throw new Error(`the base image lacks the loader ${interpreter} of ${next.name} for ${architecture}`);
    }
    for (const library of libraries) {
      if (takeLibrary(library)) continue;
      throw new Error(`the base image lacks the library ${library} of ${next.name} for ${architecture}`);
    }
  }
  // Those that are there; what they load is the C library's own.
  for (const library of NAME_SERVICES) takeLibrary(library);
  return [...found.values()].sort(by(({ name }) => name));
}

/**
 * The distribution's packages that files came with, for the bill of materials.
 *
 * @returns a line each, sorted: name, version, purl type, with tabs between.
 * @throws Error where the base has no database of packages, or a file is of none.
 */
export function systemPackages(tree: ImageFiles, files: readonly SystemFile[]): string {
  const status = tree.file(`${DPKG}/status`)?.content.toString('utf8');
  if (status === undefined) {
    throw new Error(
      `the base image has no ${DPKG}/status: the bill of materials can't name its packages; expected a Debian`,
    );
  }
  const versions = new Map<string, string>();
  for (const paragraph of status.split('\n\n')) {
    const name = /^Package: (.+)$/m.exec(paragraph)?.[1];
    const version = /^Version: (.+)$/m.exec(paragraph)?.[1];
    if (name !== undefined && version !== undefined) versions.set(name, version);
  }
  const owners = new Map<string, string>();
  for (const list of tree.kept()) {
    if (!list.endsWith('.list')) continue;
    const owner = posix.basename(list, '.list').replace(/:.*$/, '');
    for (const path of tree.file(list)?.content.toString('utf8').split('\n') ?? []) owners.set(path, owner);
  }
  const lines = files.map(({ name, path }) => {
    // A file may be listed by the name that it had before /lib became a link to /usr/lib, or by the one that it has
    // now.
    const known = [name, path, path.replace(/^\/usr/, ''), `/usr${name}`];
    const owner = known.map((each) => owners.get(each)).find((each) => each !== undefined);
    const version = owner === undefined ? undefined : versions.get(owner);
    if (version === undefined) throw new Error(`${name}: no package of the base image has this file`);
    return `${owner}\t${version}\tdeb\n`;
  });
  return [...new Set(lines)].sort().join('');
}
