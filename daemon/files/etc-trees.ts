import path from 'node:path';
import { imageEtcIn } from './image-tree.ts';
import type { EtcTrees } from './merge-etc.ts';
import { readTree } from './read-tree.ts';
import { etcOfImage } from './units-of-image.ts';

interface EtcPlaces {
  readonly root: string;
  readonly booted: { readonly root: string };
  readonly staged: { readonly root: string };
}

/**
 * Reads the three versions of /etc that are merged: the staged one as its image wants it.
 *
 * @returns them, and the paths that the staged image wants otherwise than its own version of /etc has them.
 */
export async function readEtcTrees(
  { root, booted, staged }: EtcPlaces,
  signal: AbortSignal,
): Promise<EtcTrees & { readonly notInImage: ReadonlySet<string> }> {
  const image = await readTree(path.join(staged.root, await imageEtcIn(staged.root)), '/etc', signal);
  const { etc, differing } = await etcOfImage(staged.root, image);
  return {
    base: await readTree(path.join(booted.root, await imageEtcIn(booted.root)), '/etc', signal),
    running: await readTree(path.join(root, 'etc'), '/etc', signal),
    staged: etc,
    notInImage: differing,
  };
}
