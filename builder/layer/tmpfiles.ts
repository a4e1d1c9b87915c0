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
 */
export function formatTmpfiles(lines: readonly TmpfilesLine[]): string {
  if (lines.length === 0) return '';
  const sorted = lines.toSorted(by(({ path }) => path));
  return `# What this image delivers outside of /usr and /etc.\n${sorted.map(formatLine).join('\n')}\n`;
}

function formatLine(line: TmpfilesLine): string {
  const path = quotePath(line.path);
  switch (line.kind) {
    case 'file':
      return `f+~ ${path} ${attributes(line)} - ${Buffer.from(line.contents).toString('base64')}`;
    case 'directory':
      return `d ${path} ${attributes(line)} - -`;
    case 'link':
      return `L+ ${path} - - - - ${escapeSpecifiers(line.target)}`;
    case 'ownership':
      return `z ${path} ${attributes(line)} - -`;
  }
}

function attributes({ mode, user, group }: { mode: number; user: Owner; group: Owner }): string {
  return `${mode.toString(8).padStart(4, '0')} ${owner(user)} ${owner(group)}`;
}

function owner(value: Owner): string {
  return 'id' in value ? String(value.id) : value.name;
}

/** `%` begins a specifier and white space ends the field (tmpfiles.d(5)); quotes and backslashes are C-style. */
function quotePath(path: string): string {
  const escaped = escapeSpecifiers(path);
  return /[\s"'\\]/.test(escaped) ? `"${escaped.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : escaped;
}

function escapeSpecifiers(text: string): string {
  return text.replaceAll('%', '%%');
}
