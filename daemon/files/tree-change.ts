import { byCodeUnits } from '../../api/order.ts';
import type { Tree } from './read-tree.ts';
import { sameEntry, type TreeEntry } from './tree-entry.ts';
import type { WriteStep } from './write-step.ts';

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
export function planTreeChanges(plan: ChangePlan): readonly WriteStep[] {
  const suffices = plan.suffices ?? ((_path, current, target) => sameEntry(current, target));
  const paths = [...new Set([...plan.current.keys(), ...plan.target.keys()])].sort(byCodeUnits);
  const inTheWay: WriteStep[] = [];
  const writes: WriteStep[] = [];
  const removals: WriteStep[] = [];
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
    writes.push(write(path, { current, target }, plan.source));
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

function removal(path: string, entry: TreeEntry): WriteStep {
  if (entry.kind === 'special') {
    throw new LiveApplyRefused(`${path} is a device, pipe or socket; only a reboot replaces it`);
  }
  if (entry.kind !== 'directory') return { kind: 'remove', name: path };
  return { kind: 'remove directory', name: path, evenIfNotEmpty: 'leave' };
}

function write(
  name: string,
  { current, target }: { readonly current: TreeEntry | undefined; readonly target: TreeEntry },
  source: (path: string) => string,
): WriteStep {
  switch (target.kind) {
    case 'file':
      return { ...target, kind: 'copy', name, source: source(name) };
    case 'directory': {
      const replaces = current !== undefined && current.kind !== 'directory';
      return { ...target, name, ...(replaces && { replaces }) };
    }
    case 'symlink':
      return { ...target, name };
    case 'special':
      throw new LiveApplyRefused(`${name} would be a device, pipe or socket; an image can't carry one`);
  }
}
