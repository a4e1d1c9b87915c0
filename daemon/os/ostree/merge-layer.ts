import { chmod, chown, link, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { resolveInRoot } from '../../files/resolve-in-root.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { type LayerNotes, LayerRefused } from './extract-layer.ts';

/**
 * Puts a layer onto the tree of the layers below it (OCI image-spec, layer.md "Applying Changesets"): whiteouts first,
 * since they speak of lower layers only, then the layer's own entries. Files are moved, never written: they may be hard
 * links into the repository.
 *
 * @param layer the layer's content as extractLayer left it; consumed.
 */
export async function mergeLayer(
  layer: string,
  notes: LayerNotes,
  tree: string,
  signal: AbortSignal,
): Promise<void> {
  for (const name of notes.opaque) {
    const place = await placeIn(tree, name);
    for (const child of place === undefined ? [] : await namesIn(place)) {
      await rm(path.join(place ?? '', child), { recursive: true, force: true });
    }
  }
  for (const name of notes.whiteouts) {
    const place = await placeIn(tree, name);
    if (place !== undefined) await rm(place, { recursive: true, force: true });
  }
  await mergeDirectory({ layer, tree, implied: new Set(notes.implied), signal }, '');
  for (const { path: name, target } of notes.links) {
    const source = await placeIn(tree, target);
    const place = await placeIn(tree, name);
    const isFile = source !== undefined && (await lstat(source).catch(ignoreMissing))?.isFile() === true;
    if (!isFile || place === undefined) {
      throw new LayerRefused(`/${name}: hard link to /${target}, which is in no layer`);
    }
    await rm(place, { recursive: true, force: true });
    await link(source, place);
  }
}

interface Merge {
  readonly layer: string;
  readonly tree: string;
  readonly implied: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

async function mergeDirectory(merge: Merge, directory: string): Promise<void> {
  for (const child of await namesIn(path.join(merge.layer, directory))) {
    merge.signal.throwIfAborted();
    await mergeEntry(merge, path.join(directory, child));
  }
}

async function mergeEntry(merge: Merge, name: string): Promise<void> {
  const source = path.join(merge.layer, name);
  const target = await placeIn(merge.tree, name);
  if (target === undefined)
    throw new LayerRefused(`/${name}: leads through something that is not a directory`);
  const [sourceStats, targetStats] = [await lstat(source), await lstat(target).catch(ignoreMissing)];
  if (!sourceStats.isDirectory() || targetStats === undefined) {
    if (targetStats?.isDirectory() === true) await rm(target, { recursive: true });
    return rename(source, target);
  }
  // A directory that the layer only passes through may be a link below (`/bin -> usr/bin`); then the link is followed.
  const passesThrough =
    merge.implied.has(name) && (targetStats.isDirectory() || targetStats.isSymbolicLink());
  if (!passesThrough) {
    if (!targetStats.isDirectory()) {
      await rm(target);
      await mkdir(target);
    }
    await chown(target, sourceStats.uid, sourceStats.gid);
    await chmod(target, sourceStats.mode & 0o7777);
  }
  await mergeDirectory(merge, name);
}

function placeIn(tree: string, name: string): Promise<string | undefined> {
  return resolveInRoot(tree, `/${name}`);
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch(ignoreMissing)) ?? [];
}
