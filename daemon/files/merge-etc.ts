import { posix } from 'node:path';
import { byCodeUnits } from '../../api/order.ts';
import { isTemporaryName } from './host-directory.ts';
import type { Tree } from './read-tree.ts';
import { LiveApplyRefused } from './tree-change.ts';
import { type ContentDigest, contentDigest, sameContent, sameEntry, type TreeEntry } from './tree-entry.ts';

export interface EtcTrees {
  /** The booted image's own version (imageEtcIn): what /etc was before anyone edited it. */
  readonly base: Tree;
  /** /etc as it is. */
  readonly running: Tree;
  /** That of the staged image. */
  readonly staged: Tree;
}

export interface EtcOwnership {
  /** Whether this content is what Shale put at this path, and so no local edit. */
  readonly isManaged: (path: string, digest: ContentDigest) => boolean;
  /** Paths whose owner and mode the booted image's tmpfiles fragment sets: another owner there is no local edit. */
  readonly ownerSetAtBoot: ReadonlySet<string>;
}

/**
 * What /etc has to be under the staged image: ostree's three-way merge (ostree "Deployments", "Staged deployments and
 * /etc"; libostree merge_configuration_from), except that what Shale wrote is no local edit.
 *
 * As ostree does: a path that differs from the base is the admin's and stays, whatever the staged image has; everything
 * else is as the staged image has it. A directory removed locally stays away with all that the image has in it; one
 * whose mode was changed survives with its content if the image drops it, but keeps the mode only if something in it
 * stays too.
 *
 * @returns the whole tree to have. @throws LiveApplyRefused when the admin keeps something below a path that the image
 *   makes a file; ostree can't merge that either.
 */
export function mergeEtc({ base, running, staged }: EtcTrees, ownership: EtcOwnership): Tree {
  const target = new Map<string, TreeEntry>();
  const keptWhole = new Set<string>();
  const kept: string[] = [];
  const paths = [...new Set([...running.keys(), ...staged.keys()])].sort(byCodeUnits);
  for (const path of paths) {
    const parent = posix.dirname(path);
    const entry = {
      path,
      base: base.get(path),
      running: running.get(path),
      staged: staged.get(path),
      insideKept: keptWhole.has(parent),
    };
    const choice = choose(entry, ownership);
    if (choice === 'staged') {
      const parentIsThere = parent === '/etc' || target.get(parent)?.kind === 'directory';
      if (entry.staged !== undefined && parentIsThere) target.set(path, entry.staged);
    } else if (entry.running !== undefined) {
      target.set(path, entry.running);
      kept.push(path);
      if (entry.running.kind === 'directory' && entry.staged === undefined) keptWhole.add(path);
    }
  }
  for (const path of kept) keepParents(path, running, target);
  return target;
}

interface EtcEntry {
  readonly path: string;
  readonly base: TreeEntry | undefined;
  readonly running: TreeEntry | undefined;
  readonly staged: TreeEntry | undefined;
  /** Within a directory that stays as the admin has it. */
  readonly insideKept: boolean;
}

function choose(entry: EtcEntry, { isManaged, ownerSetAtBoot }: EtcOwnership): 'staged' | 'running' {
  const { path, base, running, staged } = entry;
  if (isTemporaryName(posix.basename(path)) || isManaged(path, contentDigest(running))) return 'staged';
  if (entry.insideKept) return 'running';
  const unedited = ownerSetAtBoot.has(path) ? sameContent(base, running) : sameEntry(base, running);
  if (unedited) return 'staged';
  // ostree compares the mode of directories but copies only their content.
  if (running?.kind === 'directory' && staged?.kind === 'directory') return 'staged';
  return 'running';
}

/**
 * The directory of what stays is made, or gets its mode, from the running one (libostree
 * ensure_directory_from_template).
 */
function keepParents(path: string, running: Tree, target: Map<string, TreeEntry>): void {
  for (let above = posix.dirname(path); above !== '/etc'; above = posix.dirname(above)) {
    const there = target.get(above);
    if (there !== undefined && there.kind !== 'directory') {
      throw new LiveApplyRefused(
        `${path} was edited on this node, but the image makes ${above} a ${there.kind}; remove one of them`,
      );
    }
    const directory = running.get(above);
    if (directory !== undefined) target.set(above, directory);
    // Those further up are there already and are left as the image has them.
    if (there !== undefined) return;
  }
}
