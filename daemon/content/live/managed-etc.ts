import { readEtcTrees } from '../../files/etc-trees.ts';
import { HostTree } from '../../files/host-tree.ts';
import { ownersSetAtBoot, readFragment } from '../../files/tmpfiles-fragment.ts';
import {
  type ContentDigest,
  contentDigest,
  sameContent,
  sameEntry,
  type TreeEntry,
} from '../../files/tree-entry.ts';
import type { NodeDeployment } from '../../os/backend.ts';
import { isManaged, type ManagedPaths } from '../../records/managed-paths.ts';

export interface LiveTrees {
  /** The running root. */
  readonly root: string;
  readonly booted: NodeDeployment;
  readonly staged: NodeDeployment;
  readonly managed: ManagedPaths;
}

/**
 * The record to keep once a live apply is done: every path of /etc that is as the staged image has it while the booted
 * image, which ostree will compare with, has it otherwise.
 *
 * An edit of the admin that is the same as the image's version counts as Shale's too; after a reboot ostree would see
 * it as no edit either.
 */
export async function managedAfterApply(trees: LiveTrees, signal: AbortSignal): Promise<ManagedPaths> {
  const { base, running, staged } = await readEtcTrees(trees, signal);
  const owners = ownersSetAtBoot(await readFragment(trees.staged.root));
  const managed = new Map<string, readonly ContentDigest[]>();
  for (const name of new Set([
    ...base.keys(),
    ...running.keys(),
    ...staged.keys(),
    ...trees.managed.keys(),
  ])) {
    const now = running.get(name);
    const wanted = staged.get(name);
    if (sameEntry(now, base.get(name))) continue;
    const digest = contentDigest(now);
    const isStaged =
      now === undefined || wanted === undefined ? now === wanted : suffices(owners, name, now, wanted);
    if (isStaged || isManaged(trees.managed, name, digest)) managed.set(name, [digest]);
  }
  return managed;
}

/**
 * The managed paths that nobody touched since, in the form that OsBackend.finalizeStaged takes.
 *
 * @param root the running root.
 */
export async function untouchedManagedPaths(
  root: string,
  managed: ManagedPaths,
): Promise<ReadonlyMap<string, ContentDigest>> {
  const untouched = new Map<string, ContentDigest>();
  await using tree = new HostTree({ root });
  for (const path of managed.keys()) {
    // The recorded paths have no links, so a path that now leads through a link is a different one.
    const digest = contentDigest(await tree.entry(path));
    if (isManaged(managed, path, digest)) untouched.set(path, digest);
  }
  return untouched;
}

/**
 * Owner and mode of a path that the image's fragment names are set by systemd-tmpfiles, at boot and after a live apply.
 */
export function suffices(
  owners: ReadonlySet<string>,
  name: string,
  current: TreeEntry,
  wanted: TreeEntry,
): boolean {
  return owners.has(name) ? sameContent(current, wanted) : sameEntry(current, wanted);
}
