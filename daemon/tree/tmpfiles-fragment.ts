import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { ignoreMissing } from './tree-entry.ts';
/**
 * The parts of tmpfiles.d(5) that a fragment of Shale's image layer uses. Everything is created by systemd-tmpfiles
 * itself; it is read here to know what an image no longer delivers.
 */
export interface TmpfilesLine {
  /** Type with its modifiers, as written (`f+~`). */
  readonly type: string;
  readonly path: string;
  readonly argument: string;
}

/** A fragment that systemd-tmpfiles would complain about. */
class TmpfilesSyntaxError extends Error {
  override readonly name = 'TmpfilesSyntaxError';
}

/** @returns the lines, comments left out. @throws TmpfilesSyntaxError for a line without a type and an absolute path. */
export function parseTmpfiles(text: string): readonly TmpfilesLine[] {
  const lines: TmpfilesLine[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const fields = splitFields(line);
    const [type, path] = fields;
    if (type === undefined || path === undefined || !path.startsWith('/')) {
      throw new TmpfilesSyntaxError(
        `line ${index + 1}: expected a type and an absolute path, got ${JSON.stringify(line)}`,
      );
    }
    lines.push({ type, path: path.replaceAll('%%', '%'), argument: fields.slice(6).join(' ') });
  }
  return lines;
}

/** What a fragment brings to the host, by what has to be done when it is no longer there. */
export interface StatePaths {
  readonly files: ReadonlySet<string>;
  readonly directories: ReadonlySet<string>;
  /** Paths that the image carries and whose owner and mode the fragment sets. */
  readonly owners: ReadonlySet<string>;
}

/** @param text a fragment, or nothing for an image without one. @throws TmpfilesSyntaxError */
export function statePaths(text: string | undefined): StatePaths {
  const files = new Set<string>();
  const directories = new Set<string>();
  const owners = new Set<string>();
  for (const { type, path } of parseTmpfiles(text ?? '')) {
    switch (type.charAt(0)) {
      case 'f':
      case 'L':
        files.add(path);
        break;
      case 'd':
        directories.add(path);
        break;
      case 'z':
        owners.add(path);
        break;
    }
  }
  return { files, directories, owners };
}

/** White space separates fields; a field may be quoted, and a backslash escapes in a quoted one (tmpfiles.d(5)). */
function splitFields(line: string): string[] {
  const fields: string[] = [];
  for (const match of line.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+)/g)) {
    const quoted = match[1] ?? match[2];
    fields.push(quoted === undefined ? (match[3] ?? '') : quoted.replaceAll(/\\(.)/g, '$1'));
  }
  return fields;
}

/** @returns the tmpfiles fragment of a root, or nothing when it has none. */
export async function readFragment(root: string): Promise<string | undefined> {
  return readFile(path.join(root, nodePaths.tmpfiles), 'utf8').catch(ignoreMissing);
}
