import type { FileFacts } from './file-facts.ts';

/** What an image has at a path, as far as its contents are read from it. */
export type TreeNode =
  | { readonly kind: 'directory'; readonly children: ReadonlyMap<string, TreeNode> }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'file'; readonly facts?: FileFacts | undefined };

type Directory = Extract<TreeNode, { readonly kind: 'directory' }>;

/** As the kernel (path_resolution(7)). */
const MAX_LINKS = 40;

/** @param path absolute. @returns what is there; links are followed within the image, the last one too. */
export function nodeAt(root: Directory, path: string): Exclude<TreeNode, { kind: 'link' }> | undefined {
  const pending = partsOf(path);
  let trail: readonly Directory[] = [root];
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
    } else if (next?.kind === 'directory') trail = [...trail, next];
    else return pending.length === 0 ? next : undefined;
  }
  return trail.at(-1);
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

/** @returns the entries of a directory by name, in order; none where there is no directory. */
export function entriesAt(root: Directory, path: string): readonly (readonly [string, TreeNode])[] {
  const node = nodeAt(root, path);
  if (node?.kind !== 'directory') return [];
  return [...node.children].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

/** @returns the facts of the file at a path. */
export function factsAt(root: Directory, path: string): FileFacts | undefined {
  const node = nodeAt(root, path);
  return node?.kind === 'file' ? node.facts : undefined;
}
