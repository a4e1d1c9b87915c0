/** Extended attributes by name, as getxattr(2) gives them. */
type Attributes = Readonly<Record<string, Uint8Array>>;

/** What a base image has at a path. */
export type BaseEntry =
  | {
      readonly kind: 'directory';
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly xattrs?: Attributes;
      readonly isEmpty: boolean;
    }
  | { readonly kind: 'link'; readonly target: string }
  /** Of a file only its name is known, and of what else is neither a directory nor a link. */
  | { readonly kind: 'file' };

/** The directories, links and accounts of a base image, as its layers make them (image/base/base-tree.ts). */
export interface BaseContent {
  /** @param path absolute and normal; no link of its parents is followed. */
  at(path: string): BaseEntry | undefined;
  /** Numbers by name, from /etc/passwd and /usr/lib/passwd. */
  readonly users: ReadonlyMap<string, number>;
  /** Numbers by name, from /etc/group and /usr/lib/group. */
  readonly groups: ReadonlyMap<string, number>;
}

/** Where a path leads in a base image. */
export type Resolved =
  /**
   * The real place: no parent is a link. What is missing of the parents can be made. `through`: the links that led
   * there.
   */
  | { readonly kind: 'place'; readonly path: string; readonly through: readonly string[] }
  /** A parent is a file. */
  | { readonly kind: 'blocked'; readonly by: string }
  /** More links than the kernel follows. */
  | { readonly kind: 'loop'; readonly link: string }
  /** A link whose target leaves, by `..`, a directory that isn't there. */
  | { readonly kind: 'dangling'; readonly link: string };

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/**
 * Resolves the parents of a path as a process with the image as its root would (path_resolution(7)): an absolute target
 * starts at the root, `..` does not leave it, the last component is not followed. A parent that is missing, also where
 * a link leads, counts as one that is made, as in standard mode (daemon/files/host-tree.ts).
 *
 * @param path absolute and normal.
 * @param made real places at which the layer has a directory, whatever the base has there.
 */
export function resolveInBase(
  base: Pick<BaseContent, 'at'>,
  path: string,
  made: ReadonlySet<string> = new Set(),
): Resolved {
  const way: Way = { pending: stepsOf(path), current: '', links: [], isMissing: false };
  for (let step = way.pending.shift(); step !== undefined; step = way.pending.shift()) {
    if (step === '..') {
      if (way.isMissing) return { kind: 'dangling', link: way.links.at(-1) ?? '' };
      way.current = way.current.slice(0, Math.max(0, way.current.lastIndexOf('/')));
      continue;
    }
    const next = `${way.current}/${step}`;
    if (way.pending.length === 0) return { kind: 'place', path: next, through: way.links };
    if (made.has(next)) Object.assign(way, { current: next, isMissing: false });
    else if (!pass(way, next, base.at(next))) return { kind: 'blocked', by: next };
    if (way.links.length > MAX_LINKS) return { kind: 'loop', link: next };
  }
  return { kind: 'place', path: way.current === '' ? '/' : way.current, through: way.links };
}

/** How far a path is resolved. */
interface Way {
  readonly pending: string[];
  current: string;
  /** The links that were followed. */
  readonly links: string[];
  /** Whether the current directory isn't there. */
  isMissing: boolean;
}

/** @returns whether a parent can be passed. */
function pass(way: Way, next: string, entry: BaseEntry | undefined): boolean {
  if (entry?.kind === 'file') return false;
  if (entry?.kind === 'link') {
    way.links.push(next);
    way.pending.unshift(...stepsOf(entry.target));
    if (entry.target.startsWith('/')) way.current = '';
  } else {
    way.current = next;
    way.isMissing = entry === undefined;
  }
  return true;
}

function stepsOf(path: string): string[] {
  return path.split('/').filter((step) => step !== '' && step !== '.');
}
