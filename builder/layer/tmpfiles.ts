import { by } from '../../api/order.ts';
import type { Owner } from '../../machineconfig/node-config.ts';

/** One line of a tmpfiles.d fragment (tmpfiles.d(5)). */
export type TmpfilesLine =
  /** Create the file where nothing is. */
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly user: Owner;
      readonly group: Owner;
      readonly contents: Uint8Array;
    }
  | {
      readonly kind: 'directory';
      readonly path: string;
      readonly mode: number;
      readonly user: Owner;
      readonly group: Owner;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  /** Set owner and mode of a path that the image itself carries: for owners known by name only on the host. */
  | {
      readonly kind: 'ownership';
      readonly path: string;
      readonly mode: number;
      readonly user: Owner;
      readonly group: Owner;
    };

/**
 * Writes the tmpfiles.d fragment for a machine's first boot, a line for each entry, sorted by path: until a daemon runs
 * there, nothing else brings what the image has outside of /usr and /etc. On a machine where something is at a path
 * already, it changes nothing but owner and mode; what an image brings to such a one is written by the daemon, which
 * also brings whatever a fragment can't: a line longer than systemd reads, and what lies in a directory of somebody
 * else's (daemon/steps/verify.ts).
 *
 * Contents go as base64 (`~`, systemd 250 and later), which is not subject to specifier expansion, so any byte arrives
 * as it is.
 *
 * @returns the fragment's text; empty when there are no lines.
 */
export function formatTmpfiles(lines: readonly TmpfilesLine[]): string {
  const ownerAt = new Map(
    lines.flatMap((line) => (line.kind === 'link' ? [] : [[line.path, line.user] as const])),
  );
  const sorted = lines
    .filter(({ path }) => !passesOthersDirectory(path, ownerAt))
    .toSorted(by(({ path }) => path))
    .map(formatLine)
    .filter((line) => line !== undefined && Buffer.byteLength(line) < LONGEST_LINE);
  if (sorted.length === 0) return '';
  return `# What this image brings outside of /usr and /etc to a machine that boots it first.\n${sorted.join('\n')}\n`;
}

/** systemd's LONG_LINE_MAX (fileio.h): with a longer one in it, nothing of the fragment is created. */
const LONGEST_LINE = 1024 * 1024;

/** Directories of users, which belong to them. */
const HOME = /^\/(?:var\/)?home\/[^/]+$/;

/**
 * systemd-tmpfiles passes no directory that belongs to root in a directory that belongs to somebody else ("unsafe path
 * transition", systemd's chase.c), and those that are missing it creates as root's.
 *
 * @param ownerAt of what lines create, by path.
 */
function passesOthersDirectory(path: string, ownerAt: ReadonlyMap<string, Owner>): boolean {
  let above: string | undefined;
  for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
    const directory = path.slice(0, end);
    const owner = ownerAt.get(directory);
    const name = owner === undefined ? (HOME.test(directory) ? directory : 'root') : nameOf(owner);
    if (above !== undefined && name !== above) return true;
    above = name === 'root' ? above : name;
  }
  return false;
}

function nameOf(value: Owner): string {
  return 'name' in value ? value.name : value.id === 0 ? 'root' : String(value.id);
}

/** @returns undefined for what no fragment can hold. */
function formatLine(line: TmpfilesLine): string | undefined {
  if (CONTROL.test(line.path) || ('user' in line && CONTROL.test(nameOf(line.user) + nameOf(line.group)))) {
    return undefined;
  }
  switch (line.kind) {
    case 'file':
      return `f~ ${quoteField(line.path)} ${attributes(line)} - ${Buffer.from(line.contents).toString('base64')}`;
    case 'directory':
      return `d ${quoteField(line.path)} ${attributes(line)} - -`;
    case 'link':
      return `L ${quoteField(line.path)} - - - - ${escapeArgument(line.target)}`;
    case 'ownership':
      return `z ${quoteField(escapePattern(line.path))} ${attributes(line)} - -`;
  }
}

/** `z` takes patterns (tmpfiles.d(5)); in them a backslash takes the meaning of what follows (glob(7)). */
function escapePattern(path: string): string {
  return path.replaceAll(/[\\?*[\]{},~]/g, '\\$&');
}

function attributes({ mode, user, group }: { mode: number; user: Owner; group: Owner }): string {
  return `${mode.toString(8).padStart(4, '0')} ${owner(user)} ${owner(group)}`;
}

function owner(value: Owner): string {
  return 'id' in value ? String(value.id) : quoteField(value.name);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must be found
const CONTROL = /[\x00-\x1f\x7f]/;

/**
 * `%` begins a specifier and white space ends the field (tmpfiles.d(5)); quotes and backslashes are C-style, but
 * systemd before 254 knows no other escape here, so nothing stands for a control character.
 */
function quoteField(text: string): string {
  const escaped = escapeSpecifiers(text);
  return /[\s"'\\]/.test(escaped) ? `"${escaped.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : escaped;
}

/**
 * An argument is the rest of the line without the white space at its ends, `-` alone means none, and C-style escapes
 * are undone (tmpfiles.d(5); cunescape in systemd's tmpfiles.c).
 */
function escapeArgument(text: string): string {
  const escaped = escapeSpecifiers(text.replaceAll('\\', '\\\\'));
  if (escaped === '-') return '\\x2d';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must be escaped
  return escaped.replaceAll(/[\x00-\x1f\x7f]|^\s|\s$/g, inHex);
}

function inHex(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

function escapeSpecifiers(text: string): string {
  return text.replaceAll('%', '%%');
}
