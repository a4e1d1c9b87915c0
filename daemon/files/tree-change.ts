import { byCodeUnits } from '../../api/order.ts';
import type { Attributes } from './host-directory.ts';
import type { Tree } from './read-tree.ts';
import { sameEntry, type TreeEntry } from './tree-entry.ts';

/**
 * One step that brings a tree nearer to another. Each is atomic for those who read the tree, and harmless to repeat. A
 * directory is made, or given this mode and owner; instead of a file or link if one is there.
 */
export type TreeChange = { readonly path: string } & (
  | ({ readonly kind: 'directory' } & Attributes)
  /** `source` is where the content is to be read. */
  | ({ readonly kind: 'file'; readonly source: string; readonly sha256: string } & Attributes)
  | ({ readonly kind: 'symlink'; readonly target: string } & Pick<Attributes, 'uid' | 'gid'>)
  /** A directory goes only when it is empty: what is in it may be the admin's. */
  | { readonly kind: 'remove'; readonly was: 'directory' | 'other' }
);

/** The running root can't be brought to the staged image's state without a reboot. */
export class LiveApplyRefused extends Error {
  override readonly name = 'LiveApplyRefused';
}

export interface ChangePlan {
  /** What is there. */
  readonly current: Tree;
  /** What is to be there. */
  readonly target: Tree;
  /** Where the content of a target's file is to be read. */
  readonly source: (path: string) => string;
  /** Whether an entry will do for another; equality unless given. */
  readonly suffices?: (path: string, current: TreeEntry, target: TreeEntry) => boolean;
}

/**
 * Orders the steps from one tree to another: first what stands in the way of something of another kind, then what is to
 * be there, parents before children, and last the removals, children before parents. So a reader finds the new file
 * before the old one is gone.
 *
 * @throws LiveApplyRefused when a device, pipe or socket would have to be made or replaced.
 */
export function planTreeChanges(plan: ChangePlan): readonly TreeChange[] {
  const suffices = plan.suffices ?? ((_path, current, target) => sameEntry(current, target));
  const paths = [...new Set([...plan.current.keys(), ...plan.target.keys()])].sort(byCodeUnits);
  const inTheWay: TreeChange[] = [];
  const writes: TreeChange[] = [];
  const removals: TreeChange[] = [];
  for (const path of paths) {
    const current = plan.current.get(path);
    const target = plan.target.get(path);
    if (target === undefined) {
      if (current !== undefined) {
        (isBelowReplaced(path, plan) ? inTheWay : removals).push(removal(path, current));
      }
      continue;
    }
    if (current !== undefined && suffices(path, current, target)) continue;
    if (current?.kind === 'directory' && target.kind !== 'directory') inTheWay.push(removal(path, current));
    if (current?.kind === 'special') inTheWay.push(removal(path, current));
    writes.push(write(path, target, plan.source));
  }
  return [...inTheWay.reverse(), ...writes, ...removals.reverse()];
}

/** Whether a directory above the path becomes something else. */
function isBelowReplaced(path: string, { target }: ChangePlan): boolean {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const above = target.get(path.slice(0, end));
    if (above !== undefined) return above.kind !== 'directory';
  }
  return false;
}

function removal(path: string, entry: TreeEntry): TreeChange {
  if (entry.kind === 'special') {
    throw new LiveApplyRefused(`${path} is a device, pipe or socket; only a reboot replaces it`);
  }
  return { kind: 'remove', path, was: entry.kind === 'directory' ? 'directory' : 'other' };
}

function write(path: string, entry: TreeEntry, source: (path: string) => string): TreeChange {
  switch (entry.kind) {
    case 'file':
      return { ...entry, path, source: source(path) };
    case 'directory':
    case 'symlink':
      return { ...entry, path };
    case 'special':
      throw new LiveApplyRefused(`${path} would be a device, pipe or socket; an image can't carry one`);
  }
}
