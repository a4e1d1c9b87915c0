import { by } from '../../../api/order.ts';
import { PathError } from '../../files/host-file-error.ts';
import type { Coming, HostTree, Location } from '../../files/host-tree.ts';
import { contentDigest, type TreeEntry } from '../../files/tree-entry.ts';
import { type Desired, type DesiredTree, HASH_UP_TO } from './desired-tree.ts';

/** A path of a config, and where it lies in a tree. */
export type LocatedPath = {
  /** As the config has it. */
  readonly path: string;
  /** A hard link's entry is that of its source. */
  readonly desired: Desired;
} & (
  | { readonly location: Location; readonly source: HardLinkSource | undefined }
  /** Why it can't be reached: a link on the way that others than root could have made. */
  | { readonly location?: undefined; readonly unreachable: PathError }
);

/** What a hard link shares its inode with. */
export interface HardLinkSource {
  /** Without links, and no hard link of the config itself; undefined where hard links lead to each other. */
  readonly name: string | undefined;
  /** What will be there. */
  readonly entry: TreeEntry | undefined;
}

/** A link that leads to another one of the same config takes a look more to follow. */
const MAX_LOOKS = 40;

/**
 * Finds where the paths of a config lie once it is there: below a directory of the config nothing is where a link of
 * today leads, and below its link nothing is in the directory of today.
 *
 * @param others what else is about to change.
 * @returns them in the order of paths.
 * @throws {PathError} when links of the config lead to each other for ever; the file system's errors.
 */
export async function locateContent(
  tree: HostTree,
  desired: DesiredTree,
  others: Coming = new Map(),
): Promise<readonly LocatedPath[]> {
  // In the order of paths, a directory is opened once.
  const sorted = [...desired].sort(by(([path]) => path));
  // Most paths have no link on their way; where one has, the config's other paths are found by what it leads to.
  let coming: Coming = new Map([...others, ...sorted.map(([path, { entry }]) => [path, entry] as const)]);
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const places = await placesOf(tree, sorted, coming);
    const next = new Map(others);
    for (const { location, entry } of places) if (location !== undefined) next.set(location.name, entry);
    if (isSame(coming, next)) return withSources(tree, { sorted, places, coming });
    coming = next;
  }
  throw new PathError('the links of the config lead to each other; remove one of them');
}

interface Place {
  readonly location: Location | undefined;
  readonly unreachable?: PathError;
  readonly entry: TreeEntry | undefined;
}

type Sorted = readonly (readonly [string, Desired])[];

async function placesOf(tree: HostTree, sorted: Sorted, coming: Coming): Promise<readonly Place[]> {
  const places: Place[] = [];
  for (const [path, { entry }] of sorted) {
    try {
      places.push({ location: await tree.locate(path, coming), entry });
    } catch (error) {
      if (!(error instanceof PathError)) throw error;
      places.push({ location: undefined, unreachable: named(path, error), entry });
    }
  }
  return places;
}

/** The path as the config has it: an error names the place behind the links on the way. */
function named(path: string, error: PathError): PathError {
  return error.message.includes(path) ? error : new PathError(`${path}: ${error.message}`, { cause: error });
}

function isSame(a: Coming, b: Coming): boolean {
  return a.size === b.size && [...b].every(([name, entry]) => a.has(name) && a.get(name) === entry);
}

async function withSources(
  tree: HostTree,
  { sorted, places, coming }: { sorted: Sorted; places: readonly Place[]; coming: Coming },
): Promise<readonly LocatedPath[]> {
  const hardLinks = new Map(
    sorted.flatMap(([, { hardLinkTo }], index) => {
      const name = places[index]?.location?.name;
      return hardLinkTo === undefined || name === undefined ? [] : [[name, hardLinkTo] as const];
    }),
  );
  const located: LocatedPath[] = [];
  for (const [index, [path, desired]] of sorted.entries()) {
    const { location, unreachable } = places[index] ?? {};
    if (location === undefined) {
      if (unreachable !== undefined) located.push({ path, desired, unreachable });
      continue;
    }
    const { hardLinkTo } = desired;
    if (hardLinkTo === undefined) {
      located.push({ path, desired, location, source: undefined });
      continue;
    }
    try {
      const source = await sourceOf(tree, hardLinkTo, { hardLinks, coming });
      located.push({ path, desired: { ...desired, entry: source.entry }, location, source });
    } catch (error) {
      if (!(error instanceof PathError)) throw error;
      located.push({ path, desired, unreachable: named(path, error) });
    }
  }
  return located;
}

/** A hard link of the config shares the inode of what its own target is. */
async function sourceOf(
  tree: HostTree,
  target: string,
  { hardLinks, coming }: { hardLinks: ReadonlyMap<string, string>; coming: Coming },
): Promise<HardLinkSource> {
  const passed = new Set<string>();
  for (let path: string | undefined = target; path !== undefined; ) {
    const { name } = await tree.locate(path, coming);
    path = hardLinks.get(name);
    if (path === undefined) {
      return { name, entry: coming.has(name) ? coming.get(name) : await tree.entry(name, HASH_UP_TO) };
    }
    if (passed.has(name)) break;
    passed.add(name);
  }
  return { name: undefined, entry: undefined };
}

/** @returns why a path can't be the hard link that a config wants, as text; undefined where it can, or is none. */
export function hardLinkProblem({ path, desired: { hardLinkTo, entry } }: LocatedPath): string | undefined {
  if (hardLinkTo === undefined || (entry !== undefined && entry.kind !== 'directory')) return undefined;
  const why = entry === undefined ? 'there is no such file' : 'that is a directory';
  return `${path} can't be a hard link to ${hardLinkTo}: ${why}. Name a file that the config or the node has`;
}

/**
 * @throws {PathError} when a path can't be reached, or be the hard link that the config wants, or is by another name a
 *   path that the config wants otherwise: `/home` is a link to `/var/home` on many hosts.
 */
export function requireWritable(paths: readonly LocatedPath[]): void {
  const known = new Map<string, LocatedPath>();
  for (const each of paths) {
    if (each.location === undefined) throw each.unreachable;
    const problem = hardLinkProblem(each);
    if (problem !== undefined) throw new PathError(problem);
    const { name } = each.location;
    const other = known.get(name);
    if (other !== undefined && !isSameDesired(other.desired, each.desired)) {
      throw new PathError(
        `${other.path} and ${each.path} are both ${name} on this node, and the config wants different things there; remove one of them`,
      );
    }
    known.set(name, each);
  }
}

function isSameDesired(a: Desired, b: Desired): boolean {
  return contentDigest(a.entry) === contentDigest(b.entry) && a.hardLinkTo === b.hardLinkTo;
}
