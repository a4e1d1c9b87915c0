import path from 'node:path';
import { HostTree, type Location } from '../../files/host-tree.ts';
import { imageEtcIn, inImageEtc } from '../../files/image-tree.ts';
import { contentDigest, readTreeEntry } from '../../files/tree-entry.ts';
import { isManaged, isStatePath, type ManagedPaths } from '../../records/managed-paths.ts';
import { type Desired, type DesiredTree, HASH_UP_TO } from '../entries/desired-tree.ts';
import { type LocatedPath, locateContent, requireWritable } from '../entries/locate-content.ts';
import { type ContentWrite, isByImage, isWritten, type WritePlace } from './content-write.ts';
import { type Originals, originalAt } from './originals.ts';
import { entryAfterRelease, type ObservedPath, type SeenPath } from './plan-write.ts';

/** What Shale's records have. */
export interface KnownContent {
  readonly managed: ManagedPaths;
  readonly originals: Originals;
  /** The directories of `originals.made`, without links. */
  readonly made: readonly string[];
}

/**
 * Looks at every path that content before and after a write has.
 *
 * @returns all that is known of each, once. @throws PathError for one that can't be reached or written, the file
 *   system's errors.
 */
export async function observeContent(
  target: WritePlace,
  { write, ...trees }: { readonly from: DesiredTree; readonly to: DesiredTree; readonly write: ContentWrite },
  { managed, originals, made }: KnownContent,
  signal: AbortSignal,
): Promise<readonly ObservedPath[]> {
  await using tree = new HostTree(target);
  // Of its own, so that neither closes the directories of the other.
  await using stock = new HostTree({ root: target.imageRoot ?? target.root });
  const see = async (location: Location, from: Desired | undefined): Promise<SeenPath> => {
    signal.throwIfAborted();
    const found = await tree.entry(location.name, HASH_UP_TO);
    return {
      location,
      found,
      stock: await stockOf(stock, location.name),
      copy: await copyOf(target, location.name),
      isManaged: isManaged(managed, location.name, contentDigest(found)),
      from,
    };
  };
  const seen = new Map<string, SeenPath>();
  for (const each of await locateContent(tree, trees.from)) {
    if (each.location === undefined) throw each.unreachable;
    seen.set(each.location.name, await see(each.location, each.desired));
  }
  const released = [...seen].map(([name, path]) => [name, entryAfterRelease(path, originals, made)] as const);
  const paths = await locateContent(tree, trees.to, new Map(released));
  requireWritable(paths.filter(({ location, desired }) => isWrittenAt(write, location, desired)));
  const observed = new Map<string, ObservedPath>();
  for (const [name, path] of seen) {
    observed.set(name, { ...path, to: undefined, hardLinkSource: undefined, isLinked: false });
  }
  for (const { location, desired, source } of paths.filter(isReachable)) {
    const { name } = location;
    const path = seen.get(name) ?? (await see(location, undefined));
    const hardLinkSource = source?.name;
    const isLinked = hardLinkSource !== undefined && (await isOneFile(tree, name, hardLinkSource));
    // Of /etc in an image, the operating system has copied one file after the other.
    const isLinkedByImage = isByImage(write.to) && !isStatePath(name);
    // Its parents are those that the coming config has.
    observed.set(name, {
      ...path,
      location,
      to: desired,
      hardLinkSource,
      isLinked: isLinked || isLinkedByImage,
    });
  }
  return [...observed.values()];
}

function isWrittenAt(write: ContentWrite, location: Location | undefined, to: Desired): boolean {
  return location === undefined || isWritten(write, { location, to });
}

function isReachable(path: LocatedPath): path is LocatedPath & { readonly location: Location } {
  return path.location !== undefined;
}

async function isOneFile(tree: HostTree, a: string, b: string): Promise<boolean> {
  const [one, other] = [await tree.stat(a), await tree.stat(b)];
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

/** A deployment has its image's version of /etc beside its own; other paths have none. */
async function stockOf(tree: HostTree, name: string): Promise<ObservedPath['stock']> {
  if (!name.startsWith('/etc/')) return { place: '', entry: undefined };
  const stock = await stockName(tree, name);
  return { place: path.join(tree.roots.root, stock), entry: await tree.entry(stock, HASH_UP_TO) };
}

/**
 * @param name in /etc, without links: one that the image has on its way is where this node has a directory, so there
 *   the image has nothing.
 * @returns where the tree has its image's version of it.
 */
export async function stockName(tree: HostTree, name: string): Promise<string> {
  return inImageEtc((await tree.locate(await imageEtcIn(tree.roots.root))).name, name);
}

/** @returns the copy that was kept of a path before a config took it over, if any. */
export async function copyOf(target: WritePlace, name: string): Promise<ObservedPath['copy']> {
  const place = originalAt(target.stateDir, name);
  return { place, entry: await readTreeEntry(place, HASH_UP_TO) };
}

/** A staged deployment may have none of them, nor has a root from which an admin has removed those above them. */
export async function directoriesMade(target: WritePlace, { made }: Originals): Promise<readonly string[]> {
  await using tree = new HostTree(target);
  const names: string[] = [];
  for (const recorded of made) {
    const { name, missingParents } = await tree.locate(recorded);
    if (missingParents.length === 0) names.push(name);
  }
  return names;
}
