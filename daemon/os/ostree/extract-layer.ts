import { chmod, chown, lchown, link, lstat, mkdir, open, readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { LayerEntry, LayerItem, Xattrs } from '../../../image/layer/entry.ts';
import { archiveEntries, END_OF_ARCHIVE } from '../../../image/layer/write-layer.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';

/** What a directory can't hold of a layer; kept beside its content. Paths are relative to the tree. */
export const LayerNotesSchema = z.object({
  whiteouts: z.array(z.string()),
  opaque: z.array(z.string()),
  /** Directories that the layer doesn't name itself: those of a lower layer keep their mode and owner. */
  implied: z.array(z.string()),
  /** Hard links to files of lower layers. */
  links: z.array(z.object({ path: z.string(), target: z.string() })),
});

export type LayerNotes = z.infer<typeof LayerNotesSchema>;

interface ExtractedLayer {
  readonly notes: LayerNotes;
  /**
   * Extended attributes that the entries of these paths should have, relative to the tree: nothing here can set them.
   */
  readonly attributes: ReadonlyMap<string, Xattrs>;
}

/**
 * What belongs to a file wherever it is: its capabilities, its measured digest, its user's own. SELinux labels are the
 * host's policy's to say, and the rest is a file system's bookkeeping (overlayfs).
 */
const KEPT_ATTRIBUTES = /^(?:security\.(?:capability|ima)$|user\.)/;

/** A layer names a path that it must not, or twice. */
export class LayerRefused extends Error {
  override readonly name = 'LayerRefused';
}

/** Only mount points on a running host; containers leave files there that ostree can't or should not carry. */
const MOUNT_POINTS: ReadonlySet<string> = new Set(['dev', 'proc', 'sys', 'run', 'tmp']);

/**
 * Writes a layer's own entries into an empty directory, as a deployment will have them: /etc becomes /usr/etc (ostree
 * "Adapting existing systems"). No path leads through a link, so none leads out of the directory.
 *
 * @returns what else the layer says.
 * @throws LayerRefused, or what reading the layer throws.
 */
export async function extractLayer(
  items: AsyncIterable<LayerItem>,
  directory: string,
  signal: AbortSignal,
): Promise<ExtractedLayer> {
  const attributes = new Map<string, Xattrs>();
  const notes: LayerNotes = { whiteouts: [], opaque: [], implied: [], links: [] };
  const implied = new Set<string>();
  for await (const item of items) {
    signal.throwIfAborted();
    const name = treePath(item.path);
    if (name === '') {
      if (item.type === 'directory' || item.type === 'opaque') continue;
      throw new LayerRefused(`a layer's root can't be a ${item.type}`);
    }
    const [top = '', ...below] = name.split('/');
    if (MOUNT_POINTS.has(top) && below.length > 0) continue;
    if (item.type === 'whiteout') notes.whiteouts.push(name);
    else if (item.type === 'opaque') notes.opaque.push(name);
    else {
      await makeParents(directory, name, implied);
      await extractEntry(item, name, directory, { implied, notes });
      const kept = attributesOf(item, attributes);
      if (kept !== undefined) attributes.set(name, kept);
    }
  }
  notes.implied.push(...[...implied].sort());
  return { notes, attributes };
}

/** A hard link has those of the file that it is another name of. */
function attributesOf(item: LayerItem, known: ReadonlyMap<string, Xattrs>): Xattrs | undefined {
  if (item.type === 'hardlink') return known.get(treePath(item.target));
  if (item.type !== 'file' && item.type !== 'directory') return undefined;
  const kept = Object.entries(item.xattrs ?? {}).filter(([name]) => KEPT_ATTRIBUTES.test(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

async function extractEntry(
  item: Exclude<LayerItem, { type: 'whiteout' | 'opaque' }>,
  name: string,
  directory: string,
  { implied, notes }: { readonly implied: Set<string>; readonly notes: LayerNotes },
): Promise<void> {
  const place = path.join(directory, name);
  const stats = await lstat(place).catch(ignoreMissing);
  if (stats !== undefined && !(item.type === 'directory' && stats.isDirectory())) {
    throw new LayerRefused(`${item.path}: appears twice in one layer`);
  }
  switch (item.type) {
    case 'directory':
      if (stats === undefined) await mkdir(place);
      implied.delete(name);
      await chown(place, item.uid, item.gid);
      await chmod(place, item.mode);
      return;
    case 'file':
      return writeFile(place, item);
    case 'symlink':
      await symlink(item.target, place);
      return lchown(place, item.uid, item.gid);
    case 'hardlink': {
      const target = treePath(item.target);
      // One that leads through a link of the layer is found in the merged tree, within its root: here it could lead to
      // the host.
      const source = (await isBelowLink(directory, target))
        ? undefined
        : await lstat(path.join(directory, target)).catch(ignoreMissing);
      if (source === undefined) notes.links.push({ path: name, target });
      else if (source.isFile()) await link(path.join(directory, target), place);
      else throw new LayerRefused(`${item.path}: hard link to ${item.target}, which is not a file`);
    }
  }
}

async function isBelowLink(directory: string, name: string): Promise<boolean> {
  const parts = name.split('/').slice(0, -1);
  for (const [index] of parts.entries()) {
    const parent = path.join(directory, ...parts.slice(0, index + 1));
    const stats = await lstat(parent).catch(ignoreMissing);
    if (stats === undefined || stats.isSymbolicLink()) return stats !== undefined;
  }
  return false;
}

async function writeFile(place: string, item: Extract<LayerItem, { type: 'file' }>): Promise<void> {
  await using handle = await open(place, 'wx', 0o600);
  if (item.content instanceof Uint8Array) await handle.writeFile(item.content);
  else for await (const chunk of item.content) await handle.writeFile(chunk);
  await handle.chown(item.uid, item.gid);
  await handle.chmod(item.mode);
}

async function makeParents(directory: string, name: string, implied: Set<string>): Promise<void> {
  const parts = name.split('/').slice(0, -1);
  for (const [index] of parts.entries()) {
    const parent = parts.slice(0, index + 1).join('/');
    const place = path.join(directory, parent);
    const stats = await lstat(place).catch(ignoreMissing);
    if (stats?.isDirectory() === true) continue;
    if (stats !== undefined)
      throw new LayerRefused(`/${name}: leads through /${parent}, which is not a directory`);
    await mkdir(place, { mode: 0o755 });
    // In a setgid directory the kernel gives it that one's group, and the bit (inode(7)).
    await chown(place, process.geteuid?.() ?? 0, process.getegid?.() ?? 0);
    await chmod(place, 0o755);
    implied.add(parent);
  }
}

/** @returns the path relative to the tree, /etc as /usr/etc. @throws LayerRefused when it isn't plain. */
function treePath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || name.includes('\0')) {
    throw new LayerRefused(`${JSON.stringify(name)}: a layer's path has no ".." and no NUL`);
  }
  return (parts[0] === 'etc' ? ['usr', ...parts] : parts).join('/');
}

/**
 * Writes an archive of those files and directories of a tree that have extended attributes. Node.js can't set them and
 * a host need not have setfattr(1); ostree reads them from an archive.
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
  await using output = await open(archive, 'wx', 0o600);
  for (const [name, xattrs] of attributes) {
    await output.writeFile(await archiveEntries([await entryOf(tree, name, xattrs)], 0));
  }
  await output.writeFile(END_OF_ARCHIVE);
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
