import { by } from '../../api/order.ts';
import type { FileFacts } from './file-facts.ts';

/** What an image has at a path, as far as its contents are read from it. */
export type TreeNode = Directory | Leaf;

interface Directory {
  readonly kind: 'directory';
  readonly children: ReadonlyMap<string, TreeNode>;
}

type Leaf =
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'file'; readonly facts?: FileFacts | undefined };

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/** @param path absolute. @returns what is there; links are followed within the image, the last one too. */
export function nodeAt(root: Directory, path: string): Exclude<TreeNode, { kind: 'link' }> | undefined {
  return walkTo(root, partsOf(path));
}

/**
 * @param way names of directories, and the last of anything, from the root.
 * @param onMissing makes what is no directory one, if that is to be made.
 * @returns what is there; links are followed within the image, the last one too.
 */
export function walkTo<
  D extends { readonly kind: 'directory'; readonly children: ReadonlyMap<string, D | Leaf> },
>(
  root: D,
  way: readonly string[],
  onMissing: (parent: D, name: string) => D | undefined = () => undefined,
): D | Exclude<Leaf, { readonly kind: 'link' }> | undefined {
  const pending = [...way];
  let trail: readonly D[] = [root];
  let links = 0;
  for (let step = pending.shift(); step !== undefined; step = pending.shift()) {
    const current = trail.at(-1) ?? root;
    if (step === '..') {
      trail = trail.slice(0, Math.max(1, trail.length - 1));
      continue;
    }
    const next = current.children.get(step);
    if (next?.kind === 'link') {
      links += 1;
      if (links > MAX_LINKS) return undefined;
      if (next.target.startsWith('/')) trail = [root];
      pending.unshift(...partsOf(next.target));
      continue;
    }
    const directory = next?.kind === 'directory' ? next : onMissing(current, step);
    if (directory === undefined) return pending.length === 0 ? next : undefined;
    trail = [...trail, directory];
  }
  return trail.at(-1);
}

/** @returns the names of a path, whether it begins with a slash or not. */
export function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

/** @returns the entries of a directory by name, in order; none where there is no directory. */
export function entriesAt(root: Directory, path: string): readonly (readonly [string, TreeNode])[] {
  const node = nodeAt(root, path);
  if (node?.kind !== 'directory') return [];
  return [...node.children].sort(by(([name]) => name));
}

/** @returns the facts of the file at a path. */
export function factsAt(root: Directory, path: string): FileFacts | undefined {
  const node = nodeAt(root, path);
  return node?.kind === 'file' ? node.facts : undefined;
}
