import { by } from '../api/order.ts';
import { type BaseContent, type BaseEntry, type Resolved, resolveInBase } from './base-tree.ts';
import type { ImageObstacle } from './claim-conflicts.ts';
import type { Owned, Owner } from './node-config.ts';
import { type ConfigOutline, type PathClaim, pathClaims } from './path-claims.ts';
import { type PathPlace, placeInImage } from './place-in-image.ts';

/** Where the paths of a config lie on a base image, and what the base hinders. */
export interface PlacesOnBase {
  /** @param path of the config, or one that its image carries beside it. */
  readonly placeOf: (path: string) => PathPlace;
  readonly obstacles: readonly ImageObstacle[];
}

type Item = Pick<PathClaim, 'path' | 'type' | 'what' | 'subjects'>;

interface PlacedItem extends Item {
  readonly place: PathPlace;
  /** The real place, links followed; undefined where it can't be reached. */
  readonly real: string | undefined;
  /** Links of the base that lead there. */
  readonly through: readonly string[];
}

/**
 * Places what an image carries on its base, as standard mode would write it on a node of that base: links of parents
 * are followed, except where the config itself has a directory, which replaces the link that is there.
 */
export function placesOnBase(config: ConfigOutline, base: BaseContent): PlacesOnBase {
  const obstacles: ImageObstacle[] = [];
  const made = new Set<string>();
  const placed = itemsOf(config).map((item): PlacedItem => {
    const { place, real, through = [], why } = placeItem(item, base, made);
    if (real !== undefined && item.type === 'directory') made.add(real);
    if (why !== undefined) obstacles.push(obstacle(item.path, why, [item]));
    return { ...item, place, real, through };
  });
  const byPath = new Map(placed.map(({ path, place }) => [path, place]));
  return {
    placeOf: (path) =>
      byPath.get(path) ??
      placeItem({ path, type: 'file', what: 'a file', subjects: () => [] }, base, made).place,
    obstacles: [
      ...obstacles,
      ...oneRealPlace(placed),
      ...unknownOwners(config, base, placed),
      ...keptDirectories(config, base, placed),
    ],
  };
}

/** What the base image has against a config: to be told before anything is built. */
export function baseObstacles(config: ConfigOutline, base: BaseContent): readonly ImageObstacle[] {
  return placesOnBase(config, base).obstacles;
}

/**
 * What an image has of a config, each path once. Directories first, parents before children: they decide which links of
 * the base are still there.
 */
function itemsOf(config: ConfigOutline): readonly Item[] {
  const claims = pathClaims(config).filter(({ origin }) => origin !== 'keys in a home');
  const first = [...new Map(claims.toReversed().map((claim) => [claim.path, claim])).values()].toReversed();
  const isDirectory = ({ type }: Item) => type === 'directory';
  return [
    ...first.filter(isDirectory).sort(by(({ path }) => path)),
    ...first.filter((claim) => !isDirectory(claim)),
  ];
}

interface Placing {
  readonly place: PathPlace;
  readonly real: string | undefined;
  readonly through?: readonly string[];
  readonly why?: string;
}

function placeItem(item: Item, base: BaseContent, made: ReadonlySet<string>): Placing {
  const { path } = item;
  const asNamed = placeInImage(path);
  if (asNamed.kind === 'refused') return { place: asNamed, real: undefined };
  // Where the base doesn't say where /bin and its like lead, they are those of a merged /usr.
  const hasTop = base.at(`/${path.split('/')[1] ?? ''}`) !== undefined;
  const resolved = resolveInBase(base, asNamed.kind === 'image' && !hasTop ? asNamed.path : path, made);
  const { real, through } =
    resolved.kind === 'place'
      ? { real: resolved.path, through: resolved.through }
      : { real: undefined, through: [] };
  const place = real === undefined ? undefined : placeOfReal(real, base);
  // What the base has of the state is no node's: its own links decide there.
  if (asNamed.kind === 'state') return { place: place?.kind === 'image' ? place : asNamed, real, through };
  if (place === undefined || real === undefined) {
    return { place: asNamed, real, why: whyNoWay(path, resolved) };
  }
  if (place.kind === 'refused') {
    return { place, real, why: `leads to ${real} by links of the base image: ${place.why}` };
  }
  const there = place.kind === 'image' ? base.at(place.path) : undefined;
  const why = whyNotOver(item, real, there);
  return why === undefined ? { place, real, through } : { place, real, through, why };
}

function placeOfReal(real: string, base: BaseContent): PathPlace {
  // Where /usr/local is no link to /var, it is the image's like the rest of /usr.
  if (real.startsWith('/usr/local/') && base.at('/usr/local')?.kind === 'directory') {
    return { kind: 'image', path: real };
  }
  const place = placeInImage(real);
  const top = `/${real.split('/')[1] ?? ''}`;
  // Without a merged /usr a base has /bin of its own.
  const isOwn = place.kind === 'image' && place.path !== real && base.at(top)?.kind === 'directory';
  return isOwn && real !== top ? { kind: 'image', path: real } : place;
}

function whyNoWay(path: string, resolved: Resolved): string {
  switch (resolved.kind) {
    case 'blocked':
      return `lies below ${resolved.by}, which is a file in the base image; choose another path, or have the directory ${resolved.by} in the config, which replaces the file`;
    case 'loop':
      return `leads in a circle by the base image's link ${resolved.link}; choose another path, or name the directory that is meant`;
    case 'dangling':
      return `leads through the base image's link ${resolved.link}, whose target is missing; choose another path, or name the directory that is meant`;
    case 'place':
      throw new Error(`${path} has a place: ${resolved.path}`);
  }
}

/** A rename replaces an empty directory and no other (rename(2)); standard mode refuses the others as well. */
function whyNotOver(
  { type, what, path }: Item,
  real: string,
  there: BaseEntry | undefined,
): string | undefined {
  if (type === 'directory' || there?.kind !== 'directory' || there.isEmpty) return undefined;
  return `is a directory in the base image that is not empty${real === path ? '' : ` (${real})`}, and ${what} in its place would delete what is in it; choose another path`;
}

/** Two spellings of one place would be written one over the other. */
function oneRealPlace(placed: readonly PlacedItem[]): readonly ImageObstacle[] {
  const first = new Map<string, PlacedItem>();
  const obstacles: ImageObstacle[] = [];
  for (const item of placed) {
    if (item.real === undefined) continue;
    const other = first.get(item.real);
    if (other === undefined) first.set(item.real, item);
    else if (other.path !== item.path) {
      const why = `is the same place as ${other.path} by links of the base image: both are ${item.real}; keep one of them`;
      obstacles.push(obstacle(item.path, why, [other, item]));
    }
  }
  for (const item of placed) {
    // Also a link of the base that the config replaces led there, and will lead elsewhere.
    const passed = [...parentsOf(item.real ?? '/'), ...item.through];
    const above = passed.flatMap((parent) => first.get(parent) ?? []);
    const other = above.find(({ type }) => type !== 'directory');
    if (other === undefined || item.path.startsWith(`${other.path}/`)) continue;
    const why = `lies below ${other.path}, which is ${other.what}, by links of the base image: it is ${item.real ?? ''}; choose another path`;
    obstacles.push(obstacle(item.path, why, [other, item]));
  }
  return obstacles;
}

function parentsOf(path: string): readonly string[] {
  const steps = path.split('/').slice(1, -1);
  return steps.map((_, index) => `/${steps.slice(0, index + 1).join('/')}`);
}

/**
 * @returns the numbers that a layer has for an owner: by the accounts of the base, and root's where it doesn't know the
 *   name, which is reported beside them.
 */
export function ownerOnBase(
  { user, group }: Owned,
  base: Pick<BaseContent, 'users' | 'groups'>,
): { readonly uid: number; readonly gid: number; readonly unknown?: string } {
  const uid = numberOf(user, base.users);
  const gid = numberOf(group, base.groups);
  const unknown =
    uid === undefined
      ? unknownName('user', user)
      : gid === undefined
        ? unknownName('group', group)
        : undefined;
  return { uid: uid ?? 0, gid: gid ?? 0, ...(unknown === undefined ? {} : { unknown }) };
}

function numberOf(owner: Owner, known: ReadonlyMap<string, number>): number | undefined {
  if ('id' in owner) return owner.id;
  return owner.name === 'root' ? 0 : known.get(owner.name);
}

function unknownName(kind: 'user' | 'group', owner: Owner): string {
  const file = kind === 'user' ? 'passwd' : 'group';
  const name = 'name' in owner ? owner.name : String(owner.id);
  return `${kind} ${name} is neither in /etc/${file} nor in /usr/lib/${file} of the base image`;
}

/**
 * A node gives files and directories of /etc the owner that it alone knows. Nothing can in /usr, which is read-only
 * there, and nothing does for a link.
 */
function unknownOwners(
  { files, directories, links }: ConfigOutline,
  base: BaseContent,
  placed: readonly PlacedItem[],
): readonly ImageObstacle[] {
  return placed.flatMap((item) => {
    const { path, type, place } = item;
    const owned = files.get(path) ?? directories.get(path) ?? links.get(path);
    const unknown = owned === undefined ? undefined : ownerOnBase(owned, base).unknown;
    if (unknown === undefined || type === 'hardlink' || place.kind !== 'image') return [];
    if (type !== 'symlink' && place.path.startsWith('/etc/')) return [];
    return [obstacle(path, `${unknown}; give a number, or a name that the base image has`, [item])];
  });
}

/**
 * libostree, by which bootc and rpm-ostree merge layers, keeps mode and owner of a directory that a lower layer has,
 * whatever the layer above says. In /etc the daemon sets them; /usr is read-only on a node.
 */
function keptDirectories(
  { directories }: ConfigOutline,
  base: BaseContent,
  placed: readonly PlacedItem[],
): readonly ImageObstacle[] {
  return placed.flatMap((item) => {
    const { path, place } = item;
    const directory = directories.get(path);
    const there = place.kind === 'image' && place.path.startsWith('/usr/') ? base.at(place.path) : undefined;
    if (directory === undefined || there?.kind !== 'directory') return [];
    const { uid, gid } = ownerOnBase(directory, base);
    if (directory.mode === there.mode && uid === there.uid && gid === there.gid) return [];
    const why = `is a directory of the base image with mode ${octal(there.mode)} and owner ${there.uid}:${there.gid}, which bootc and rpm-ostree keep; leave it to the base image, or name these`;
    return [obstacle(path, why, [item])];
  });
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

function obstacle(subject: string, why: string, items: readonly Item[]): ImageObstacle {
  return { hinders: 'image', subject, why, involved: items.flatMap((item) => item.subjects()) };
}
