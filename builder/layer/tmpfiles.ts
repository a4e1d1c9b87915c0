import { by } from '../../api/order.ts';
import type { Owner } from '../../machineconfig/node-config.ts';

/** One line of a tmpfiles.d fragment (tmpfiles.d(5)). */
export type TmpfilesLine =
  /** Write the file at each boot, whatever is there: the state follows the image. */
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
 * Writes a tmpfiles.d fragment, a line for each entry, sorted by path.
 *
 * Contents go as base64 (`~`, systemd 250 and later), which is not subject to specifier expansion, so any byte arrives
 * as it is.
 *
 * @returns the fragment's text; empty when there are no lines.
 * @throws {TmpfilesError} for a path or an owner that would be more than one line. Parsing refuses them before.
 */
export function formatTmpfiles(lines: readonly TmpfilesLine[]): string {
  if (lines.length === 0) return '';
  const sorted = lines.toSorted(by(({ path }) => path));
  return `# What this image delivers outside of /usr and /etc.\n${sorted.map(formatLine).join('\n')}\n`;
}

/** A fragment has no way to write this. */
class TmpfilesError extends Error {
  override readonly name = 'TmpfilesError';
}

function formatLine(line: TmpfilesLine): string {
  const path = quoteField(line.path);
  switch (line.kind) {
    case 'file':
      return `f+~ ${path} ${attributes(line)} - ${Buffer.from(line.contents).toString('base64')}`;
    case 'directory':
      return `d ${path} ${attributes(line)} - -`;
    case 'link':
      return `L+ ${path} - - - - ${escapeArgument(line.target)}`;
    case 'ownership':
      return `z ${path} ${attributes(line)} - -`;
  }
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
 * `%` begins a specifier and white space ends the field (tmpfiles.d(5)); quotes and backslashes are C-style, but systemd before 254
 * knows no other escape here, so nothing stands for a control character.
 */
function quoteField(text: string): string {
  if (CONTROL.test(text)) {
    throw new TmpfilesError(`${JSON.stringify(text)} has a control character, which tmpfiles.d can't hold`);
  }
  const escaped = escapeSpecifiers(text);
  return /[\s"'\\]/.test(escaped) ? `"${escaped.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : escaped;
}

/**
 * An argument is the rest of the line without the white space at its ends, `-` alone means none, and C-style escapes are undone
 * (tmpfiles.d(5); cunescape in systemd's tmpfiles.c).
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
