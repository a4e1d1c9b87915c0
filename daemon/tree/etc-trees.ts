import path from 'node:path';
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
 * @returns them, and the paths that the staged image wants otherwise than its /usr/etc has them.
 */
export async function readEtcTrees(
  { root, booted, staged }: EtcPlaces,
  signal: AbortSignal,
): Promise<EtcTrees & { readonly notInImage: ReadonlySet<string> }> {
  const image = await readTree(path.join(staged.root, 'usr/etc'), '/etc', signal);
  const { etc, differing } = await etcOfImage(staged.root, image);
  return {
    base: await readTree(path.join(booted.root, 'usr/etc'), '/etc', signal),
    running: await readTree(path.join(root, 'etc'), '/etc', signal),
    staged: etc,
    notInImage: differing,
  };
}
