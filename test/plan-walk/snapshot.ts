import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { fileText, linkText } from './slots.ts';

/**
 * What lies at each path of a node, by its real name. Other directories than those of a config are left out: they come
 * and go with their contents.
 */
export type Snapshot = ReadonlyMap<string, string>;

/** What belongs to Shale itself or to the system that runs, and says nothing of a config. */
const NOT_CONTENT = [
  nodePaths.state,
  nodePaths.imageConfig,
  nodePaths.tmpfiles,
  '/usr/etc',
  '/usr/lib/ostree-boot',
  '/etc/.updated',
  '/var/.updated',
];
/** Longer ones are binaries. */
const LONGEST_TEXT = 2_048;

/**
 * @param root the running root of a directory node.
 * @param directories those that count, by real names.
 */
export async function takeSnapshot(root: string, directories: ReadonlySet<string>): Promise<Snapshot> {
  const found = new Map<string, string>();
  const visit = async (directory: string): Promise<void> => {
    const names = (await readdir(path.join(root, directory))).sort();
    for (const name of names) {
      const inside = `${directory}/${name}`;
      if (NOT_CONTENT.includes(inside)) continue;
      const stats = await lstat(path.join(root, inside));
      const owner = `${stats.uid}:${stats.gid}`;
      const mode = stats.mode & 0o7777;
      if (stats.isDirectory()) {
        if (directories.has(inside)) found.set(inside, `directory ${mode.toString(8)} ${owner}`);
        await visit(inside);
      } else if (stats.isSymbolicLink()) {
        found.set(inside, linkText(await readlink(path.join(root, inside)), owner));
      } else {
        found.set(inside, fileText(textOf(await readFile(path.join(root, inside))), mode, owner));
      }
    }
  };
  for (const directory of ['/etc', '/usr', '/var']) await visit(directory);
  return found;
}

function textOf(content: Buffer): string {
  if (content.length <= LONGEST_TEXT) return content.toString();
  return createHash('sha256').update(content).digest('hex');
}

/** @returns where two differ, one line each. */
export function differences(found: Snapshot, expected: Snapshot): readonly string[] {
  const paths = [...new Set([...found.keys(), ...expected.keys()])].sort();
  return paths.flatMap((name) => {
    const [is, should] = [found.get(name) ?? 'nothing', expected.get(name) ?? 'nothing'];
    return is === should ? [] : [`${name}: is ${is}, but should be ${should}`];
  });
}
