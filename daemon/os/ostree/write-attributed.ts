import { lstat, open, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { LayerEntry, Xattrs } from '../../../image/layer/entry.ts';
import { archiveEntries, END_OF_ARCHIVE } from '../../../image/layer/write-layer.ts';

/**
 * Writes an archive of those files and directories of a tree that have extended attributes. Node.js can't set them and a
 * host need not have setfattr(1); ostree reads them from an archive.
 *
 * @param archive to be made.
 * @param tree a directory; its name stands before each path in the archive.
 * @param attributes by path relative to the tree.
 */
export async function writeAttributed(
  archive: string,
  tree: string,
  attributes: ReadonlyMap<string, Xattrs>,
): Promise<void> {
  const output = await open(archive, 'wx', 0o600);
  try {
    for (const [name, xattrs] of attributes) {
      await output.writeFile(await archiveEntries([await entryOf(tree, name, xattrs)], 0));
    }
    await output.writeFile(END_OF_ARCHIVE);
  } finally {
    await output.close();
  }
}

async function entryOf(tree: string, name: string, xattrs: Xattrs): Promise<LayerEntry> {
  const place = path.join(tree, name);
  const { mode, uid, gid, isDirectory } = await statOf(place);
  const about = { path: `/${path.basename(tree)}/${name}`, mode, uid, gid, xattrs };
  return isDirectory
    ? { type: 'directory', ...about }
    : { type: 'file', ...about, content: await readFile(place) };
}

async function statOf(place: string) {
  const stats = await lstat(place);
  return { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid, isDirectory: stats.isDirectory() };
}
