import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { ignoreMissing } from './tree-entry.ts';

/** The parts of tmpfiles.d(5) that a fragment of Shale's image layer uses, read to know what systemd sets at boot. */
interface TmpfilesLine {
  /** Type with its modifiers, as written (`f+~`). */
  readonly type: string;
  readonly path: string;
}

/**
 * @returns the lines, comments left out. @throws Error for a line without a type and an absolute path.
 */
function parseTmpfiles(text: string): readonly TmpfilesLine[] {
  const lines: TmpfilesLine[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const fields = splitFields(line);
    const [type, path] = fields;
    if (type === undefined || path === undefined || !path.startsWith('/')) {
      throw new Error(`line ${index + 1}: expected a type and an absolute path, got ${JSON.stringify(line)}`);
    }
    lines.push({ type, path: path.replaceAll('%%', '%') });
  }
  return lines;
}

/**
 * @param text a fragment, or nothing for an image without one.
 * @returns the paths that the image carries and whose owner and mode the fragment sets.
 * @throws Error where it is wrong.
 */
export function ownersSetAtBoot(text: string | undefined): ReadonlySet<string> {
  const lines = parseTmpfiles(text ?? '').filter(({ type }) => type.startsWith('z'));
  // Its paths are patterns, in which a backslash takes the meaning of what follows.
  return new Set(lines.map(({ path }) => path.replaceAll(/\\(.)/g, '$1')));
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
  for (const name of [nodePaths.tmpfiles, nodePaths.formerTmpfiles]) {
    const text = await readFile(path.join(root, name), 'utf8').catch(ignoreMissing);
    if (text !== undefined) return text;
  }
  return undefined;
}
