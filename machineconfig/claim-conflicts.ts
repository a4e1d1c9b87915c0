import { posix } from 'node:path';
import type { Subject } from './owners.ts';
import type { PathClaim } from './path-claims.ts';
import { placeInImage, realPlace } from './place-in-image.ts';
import { quote } from './problem.ts';

/** Why a rendered config can't come to a node. */
export type Obstacle = NodeObstacle | ImageObstacle;

interface ObstacleText {
  /** The path, unit or field of the rendered config. */
  readonly subject: string;
  readonly why: string;
  /** What the MachineConfigs set that have to be changed; what the subject is of comes last. */
  readonly involved: readonly Subject[];
}

/** No node can have it, be it in standard or in layered mode. */
export interface NodeObstacle extends ObstacleText {
  readonly hinders: 'node';
  readonly expected: string;
}

/** No image can carry it; a node in standard mode may have it. */
export interface ImageObstacle extends ObstacleText {
  readonly hinders: 'image';
}

/**
 * Finds what can't be side by side: two things at one place, and what lies below something that is no directory.
 *
 * @returns in the order of the claims, one for each of them at most.
 */
export function claimConflicts(claims: readonly PathClaim[]): readonly Obstacle[] {
  const first = new Map<string, PathClaim>();
  const obstacles: Obstacle[] = [];
  for (const claim of claims) {
    const other = first.get(claim.place);
    if (other === undefined) first.set(claim.place, claim);
    else obstacles.push(...twoThings(claim, other));
  }
  for (const claim of claims) {
    const above = firstAbove(claim.place, (place) => {
      const each = first.get(place);
      return each?.type === 'directory' ? undefined : each;
    });
    if (above !== undefined) obstacles.push(belowNoDirectory(claim, above));
  }
  return obstacles;
}

function twoThings(one: PathClaim, other: PathClaim): Obstacle[] {
  const why =
    one.path === other.path
      ? `is at once ${other.what} and ${one.what}`
      : `is ${one.what}, and ${other.path}, the same place on a node, is ${other.what}`;
  const about = { subject: one.path, why, involved: [...other.subjects(), ...one.subjects()] };
  if (one.path === other.path) {
    // Each mode has keys and Shale's own files where the other has none.
    const isOfMode = ({ origin }: PathClaim) => origin === 'keys in a home' || origin === 'file of an image';
    if (isOfMode(one) && isOfMode(other)) return [];
    if (one.origin === 'file of an image') return [{ hinders: 'image', ...about }];
    const links = [one, other].map(({ type, target }) => (type === 'symlink' ? target : undefined));
    if (links.every((target) => target !== undefined)) {
      // Standard mode writes the link that is written down.
      return links[0] === links[1] ? [] : [{ hinders: 'image', ...about }];
    }
  }
  return [{ hinders: 'node', ...about, expected: 'one of them' }];
}

function belowNoDirectory(claim: PathClaim, above: PathClaim): NodeObstacle {
  const same = (path: string) => (realPlace(path) === above.place ? path : undefined);
  const own = firstAbove(claim.path, same) ?? above.path;
  const name = own === above.path ? own : `${own}, another name of ${above.path}`;
  return {
    hinders: 'node',
    subject: claim.path,
    why: `is ${claim.what} below ${name}, which is ${above.what}`,
    expected: insteadOf(claim, above),
    involved: [...above.subjects(), ...claim.subjects()],
  };
}

function insteadOf({ origin }: PathClaim, above: PathClaim): string {
  // Only an entry is where somebody wanted it.
  if (origin !== 'entry') return `a directory at ${above.path}, or nothing there`;
  return above.type === 'symlink' && above.origin === 'entry'
    ? 'the path behind the link'
    : `a directory at ${above.path}, or another path`;
}

/** @returns what is sought of the directories above a path, the nearest first. */
function firstAbove<T>(path: string, sought: (parent: string) => T | undefined): T | undefined {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const found = sought(path.slice(0, end));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Where a hard link leads. */
export type Linked =
  /** To a file of the config, or to another of its links' file: the place of the file itself. */
  | { readonly kind: 'file'; readonly place: string }
  /** To something that the config doesn't bring: the node may have it. */
  | { readonly kind: 'unknown'; readonly place: string }
  | { readonly kind: 'directory' | 'symlink' | 'loop'; readonly place: string };

/**
 * @param claims by their places. @param target of a hard link of the config.
 * @returns where it leads; through other hard links, because a hard link to one of them is one to its file.
 */
export function linkedPlace(claims: ReadonlyMap<string, PathClaim>, target: string): Linked {
  const passed = new Set<string>();
  for (let place = realPlace(posix.normalize(target)); ; ) {
    const claim = claims.get(place);
    // Shale's own files are no part of the config: in standard mode they are not there.
    if (claim === undefined || claim.origin === 'file of an image') return { kind: 'unknown', place };
    if (claim.type !== 'hardlink') return { kind: claim.type, place };
    if (passed.has(place)) return { kind: 'loop', place };
    passed.add(place);
    place = realPlace(posix.normalize(claim.target ?? ''));
  }
}

/**
 * Directories below which a node has a file system, or a mount of one, of its own: link(2) doesn't leave it (EXDEV).
 */
const MOUNTS = ['etc', 'usr', 'var', 'run', 'tmp', 'boot', 'dev', 'proc', 'sys', 'sysroot'];

/** @returns why a hard link of a config can't be made; undefined for one that can. */
export function hardLinkObstacle(
  claims: ReadonlyMap<string, PathClaim>,
  link: PathClaim,
): Obstacle | undefined {
  const { path, place, target = '' } = link;
  const isInImage = placeInImage(path).kind === 'image';
  const own = claims.get(realPlace(posix.normalize(target)));
  const involved = [...(own?.subjects() ?? []), ...link.subjects()];
  const node = (why: string, expected: string): Obstacle => ({
    hinders: 'node',
    subject: path,
    why: `is a hard link to ${quote(target)}, ${why}`,
    expected,
    involved,
  });
  if (!posix.isAbsolute(target)) return node('which is no absolute path', 'the path of a file');
  const linked = linkedPlace(claims, target);
  if (mountOf(place) !== mountOf(linked.place)) {
    return node('in another file system of a node', `a target below /${mountOf(place)}, or a symbolic link`);
  }
  const image = (why: string): Obstacle => ({
    hinders: 'image',
    subject: path,
    why: `is a hard link to ${quote(target)}, ${why}`,
    involved,
  });
  switch (linked.kind) {
    case 'file':
      return undefined;
    case 'directory':
      return node('which is a directory of this config', 'a file, because the link is hard');
    case 'loop':
      return node('which leads back to it', 'a file, because the link is hard');
    case 'symlink':
      // link(2) doesn't follow it, but archives are read in more ways than one.
      return isInImage
        ? image('which is a symbolic link of this config; name the file behind it')
        : undefined;
    case 'unknown':
      return isInImage
        ? image(
            'which is no file of this config, and an image can only link what it brings; use a symbolic link',
          )
        : undefined;
  }
}

function mountOf(place: string): string {
  const [, top = ''] = place.split('/');
  return MOUNTS.includes(top) ? top : '';
}
