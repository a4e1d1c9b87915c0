import { createHash } from 'node:crypto';
import path from 'node:path';
import { by } from '../../api/order.ts';
import { imageEtcIn, inImageEtc } from './image-tree.ts';
import { type EtcOwnership, type EtcTrees, mergeEtc } from './merge-etc.ts';
import { readTree, type Tree } from './read-tree.ts';
import { ownersSetAtBoot, readFragment } from './tmpfiles-fragment.ts';
import { contentDigest } from './tree-entry.ts';
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

/** What /etc has to be under a staged image (mergeEtc), and what that was decided by. */
interface MergedEtc {
  readonly trees: Awaited<ReturnType<typeof readEtcTrees>>;
  readonly ownerSetAtBoot: ReadonlySet<string>;
  readonly target: Tree;
  /** @returns where the staged image's own version of a path is, on this machine. */
  readonly inImage: (name: string) => string;
}

/** @throws LiveApplyRefused when the running /etc and the image's can't be merged. */
export async function readMergedEtc(
  places: EtcPlaces,
  isManaged: EtcOwnership['isManaged'],
  signal: AbortSignal,
): Promise<MergedEtc> {
  const trees = await readEtcTrees(places, signal);
  const ownerSetAtBoot = ownersSetAtBoot(await readFragment(places.root));
  const imageEtc = path.join(places.staged.root, await imageEtcIn(places.staged.root));
  const target = mergeEtc(trees, { isManaged, ownerSetAtBoot });
  return { trees, ownerSetAtBoot, target, inImage: (name) => inImageEtc(imageEtc, name) };
}

/** Bytes; of larger files size and time tell whether they were changed. */
const READ_UP_TO = 4 * 1024 * 1024;

/**
 * What an /etc holds, in one digest: names, types, modes, owners, links and contents. Times are left out, so that a
 * file that is written again with the same content is no change.
 *
 * @returns a digest in hex. @throws the file system's errors.
 */
export async function etcDigest(root: string, signal: AbortSignal): Promise<string> {
  const tree = await readTree(path.join(root, 'etc'), '/etc', signal, READ_UP_TO);
  const entries = [...tree].sort(by(([name]) => name)).map(([name, entry]) => [name, contentDigest(entry)]);
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex');
}
