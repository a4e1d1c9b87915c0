import { posix } from 'node:path';
import { quote } from '../problem.ts';
import { checkEncoding } from './check-reference.ts';
import type {
  IgnitionDirectory,
  IgnitionFile,
  IgnitionLink,
  IgnitionOwner,
  PathEntry,
  Storage,
} from './config.ts';
import type { ContentsReader } from './contents.ts';
import type { Report } from './report.ts';

const PERMISSIONS = 0o777;
const ALL_MODE_BITS = 0o7777;

/**
 * Checks files, directories and links: each by itself, then against each other and against unit files.
 *
 * @param unitPaths where systemd units and drop-ins of the same config are written
 */
export function checkPathEntries(
  storage: Storage,
  unitPaths: ReadonlySet<string>,
  contents: ContentsReader,
  report: Report,
): void {
  const { files = [], directories = [], links = [] } = storage;
  for (const [index, file] of files.entries()) {
    checkFile(file, `$.storage.files[${index}]`, contents, report);
  }
  for (const [index, directory] of directories.entries()) {
    checkDirectory(directory, `$.storage.directories[${index}]`, report);
  }
  const directoryPaths = new Set(directories.map((directory) => directory.path));
  for (const [index, link] of links.entries()) {
    checkLink(link, `$.storage.links[${index}]`, directoryPaths, report);
  }
  const linkPaths = new Set(links.map((link) => link.path));
  const lists = [
    ['$.storage.files', files],
    ['$.storage.directories', directories],
    ['$.storage.links', links],
  ] as const;
  for (const [path, entries] of lists) {
    checkPlaces(path, entries, unitPaths, linkPaths, report);
  }
  report.duplicates(lists.map(([path, entries]) => [path, entries.map((entry) => entry.path)]));
}

function checkFile(file: IgnitionFile, path: string, contents: ContentsReader, report: Report): void {
  checkEntry(file, path, report);
  const resources = [
    [`${path}.contents`, file.contents ?? {}] as const,
    ...(file.append ?? []).map((resource, index) => [`${path}.append[${index}]`, resource] as const),
  ];
  for (const [place, resource] of resources) {
    checkEncoding(resource, place, report);
    if (resource.verification?.hash !== undefined && resource.source === undefined) {
      report.problem(`${place}.source`, 'is missing', 'a source, because there is a verification hash');
    }
    if ((resource.httpHeaders ?? []).length > 0) {
      report.problem(`${place}.httpHeaders`, 'have no use with a data URL', 'no HTTP headers');
    }
    report.problems.push(...contents.check(resource, place));
  }
  // Bug 2038240: MCO refuses setuid, setgid and sticky bits, which Ignition before 3.6 does not apply either.
  checkMode(file.mode, `${path}.mode`, PERMISSIONS, report);
  if (file.overwrite === true && file.contents?.source === undefined) {
    report.problem(`${path}.contents.source`, 'is missing', 'a source, because overwrite is true');
  }
}

function checkDirectory(directory: IgnitionDirectory, path: string, report: Report): void {
  checkEntry(directory, path, report);
  checkMode(directory.mode, `${path}.mode`, ALL_MODE_BITS, report);
  if (directory.mode !== undefined && directory.mode > PERMISSIONS && directory.mode <= ALL_MODE_BITS) {
    report.warning(`${path}.mode`, 'has special bits, which Ignition before 3.6 ignores', 'at most 0777');
  }
}

function checkLink(link: IgnitionLink, path: string, directories: ReadonlySet<string>, report: Report): void {
  checkEntry(link, path, report);
  const { target = '', hard = false } = link;
  if (target === '') {
    report.problem(`${path}.target`, 'is missing', 'what the link points to');
    return;
  }
  // An image carries it in a line of tmpfiles.d, where a line break would begin another.
  if (CONTROL.test(target)) {
    report.problem(`${path}.target`, `${quote(target)} has a control character`, 'a target without one');
    return;
  }
  if (isTooLong(target)) {
    report.problem(`${path}.target`, `${quote(target)} is too long for Linux`, 'a shorter target');
    return;
  }
  if (!hard) {
    return;
  }
  const absolute = posix.isAbsolute(target) ? posix.normalize(target) : posix.join(link.path, target);
  if (directories.has(absolute)) {
    report.problem(`${path}.target`, 'is a directory of this config', 'a file, because the link is hard');
  }
}

function checkEntry(entry: PathEntry, path: string, report: Report): void {
  const why = entry.path === '/' ? 'is the root directory' : whyNotCleanPath(entry.path);
  if (why !== undefined) {
    report.problem(`${path}.path`, why, 'an absolute path without empty, "." or ".." elements');
  }
  checkOwner(entry.user, `${path}.user`, report);
  checkOwner(entry.group, `${path}.group`, report);
}

/** uid_t and gid_t are 32 bits wide, and -1 means "leave as it is" to chown(2). */
const MAX_ID = 0xfffffffe;

/**
 * A name may come from a domain (`admin@example.com`), so more is allowed than useradd(8) takes. `:` and line breaks
 * end a field of passwd(5), white space one of tmpfiles.d(5), and what is a number there is an id.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must not be there
const OWNER_NAME = /^(?!\d+$)[^\s:/\x00-\x1f\x7f-]([^\s:/\x00-\x1f\x7f]{0,254})$/;

function checkOwner(owner: IgnitionOwner | undefined, path: string, report: Report): void {
  const { id, name = '' } = owner ?? {};
  if (id !== undefined && name !== '') {
    report.problem(path, 'has both id and name', 'one of them');
  }
  if (id !== undefined && (id < 0 || id > MAX_ID)) {
    report.problem(`${path}.id`, `is ${id}`, `0 to ${MAX_ID}`);
  }
  if (name !== '' && !isOwnerName(name)) {
    report.problem(`${path}.name`, `${quote(name)} is not the name of a user or group`, OWNER_NAME_EXPECTED);
  }
}

/** What the name of a user or group has to be. */
export const OWNER_NAME_EXPECTED =
  'a name without white space, control characters, ":" and "/", and not a number (that is an id)';

/** @returns whether any host can have a user or group of that name. */
export function isOwnerName(name: string): boolean {
  return OWNER_NAME.test(name);
}

function checkMode(mode: number | undefined, path: string, most: number, report: Report): void {
  if (mode !== undefined && (mode < 0 || mode > most)) {
    report.problem(path, `is ${mode}, in octal 0${mode.toString(8)}`, `0 to 0${most.toString(8)} (${most})`);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must be found
const CONTROL = /[\x00-\x1f\x7f]/;

/** limits.h: bytes of a path without its NUL, and of one element. */
const PATH_MAX = 4095;
const NAME_MAX = 255;

function isTooLong(path: string): boolean {
  // Counting bytes costs, and a UTF-16 code unit has three at most.
  if (path.length * 3 <= NAME_MAX) return false;
  return (
    Buffer.byteLength(path) > PATH_MAX || path.split('/').some((name) => Buffer.byteLength(name) > NAME_MAX)
  );
}

/**
 * Ignition's path rule: absolute and equal to its own path.Clean. A NUL or a newline can't stand in a path that is
 * written into tmpfiles.d or a tar header either.
 *
 * @returns in words what is wrong, or undefined; '' is reported where it is read
 */
export function whyNotCleanPath(path: string): string | undefined {
  if (path === '' || path === '/') {
    return undefined;
  }
  if (!path.startsWith('/')) {
    return `${quote(path)} is relative`;
  }
  if (CONTROL.test(path)) {
    return `${quote(path)} has a control character`;
  }
  if (isTooLong(path)) {
    return `${quote(path)} is too long for Linux`;
  }
  return /\/(\.{0,2})(\/|$)/.test(path) ? `${quote(path)} is not in its simplest form` : undefined;
}

/** A file in a place that another part of the config owns would be written twice, or through a link. */
function checkPlaces(
  path: string,
  entries: readonly PathEntry[],
  unitPaths: ReadonlySet<string>,
  linkPaths: ReadonlySet<string>,
  report: Report,
): void {
  for (const [index, entry] of entries.entries()) {
    if (unitPaths.has(entry.path)) {
      report.problem(`${path}[${index}].path`, 'is written by a systemd unit of this config', 'one of them');
    }
    const link =
      linkPaths.size === 0 ? undefined : ancestors(entry.path).find((parent) => linkPaths.has(parent));
    if (link !== undefined) {
      report.problem(`${path}[${index}].path`, `goes through the link ${link}`, 'the path behind the link');
    }
  }
}

function ancestors(path: string): string[] {
  const parents: string[] = [];
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    parents.push(path.slice(0, end));
  }
  return parents;
}
