import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { Host, ServiceManager } from '../host/host.ts';
import type { Relabel } from '../host/selinux-labels.ts';
import { applyTreeChanges } from '../host-files/apply-tree-changes.ts';
import { HostTree } from '../host-files/host-tree.ts';
import { removeIfEmpty } from '../host-files/put-file.ts';
import type { Deployment } from '../os/backend.ts';
import {
  forgetUnlabelledPaths,
  intendManagedPaths,
  type ManagedPaths,
  mergeManaged,
  readManagedPaths,
  readUnlabelledPaths,
  writeManagedPaths,
  writeUnlabelledPaths,
} from '../records/managed-paths.ts';
import { isStatePath } from '../records/state-paths.ts';
import { parseTmpfiles, readFragment, type TmpfilesLine } from '../tree/tmpfiles-fragment.ts';
import type { TreeChange } from '../tree/tree-change.ts';
import { planLiveApply } from './live-plan.ts';
import { managedAfterApply } from './managed-etc.ts';

export interface LiveApply {
  readonly host: Host;
  readonly services: Pick<ServiceManager, 'applyTmpfiles'>;
  readonly relabel: Relabel;
  readonly booted: Deployment;
  readonly staged: Deployment;
  /** What counts as Shale's own in /etc beyond the record, and so is no local edit. */
  readonly handedOver?: ManagedPaths;
  /** Called, and waited for, before each step is taken: the journal. */
  readonly beforeStep?: (step: LiveStep) => Promise<void>;
  readonly signal: AbortSignal;
}

export type LiveStep = TreeChange | { readonly kind: 'tmpfiles'; readonly fragment: string };

/**
 * Brings the running root to what the next boot will have, from the staged deployment's own content. Killed at any
 * point and called again, it ends in the same state: what it is about to put into /etc is on record before, and the
 * fragment by which removed state paths are known is replaced last.
 *
 * @returns the record of managed paths as it is now on disk.
 * @throws LiveApplyRefused before anything is changed; ServiceError and the file system's errors on the way.
 */
export async function applyLive(apply: LiveApply): Promise<ManagedPaths> {
  const { host, services, relabel, signal, beforeStep } = apply;
  const managed = mergeManaged(apply.handedOver ?? new Map(), await readManagedPaths(host.root));
  const trees = { root: host.root, booted: apply.booted, staged: apply.staged, managed };
  const plan = await planLiveApply(trees, signal);
  const options = { signal, ...present({ beforeStep }) };
  const [fragmentChanges, usrChanges] = partition(plan.usr, (change) => change.path === nodePaths.tmpfiles);

  const changed = [...plan.usr, ...plan.etc].map((change) => change.path);
  const unlabelled = [...new Set([...changed, ...(await readUnlabelledPaths(host.root))])].sort();
  if (unlabelled.length > 0) await writeUnlabelledPaths(host.root, unlabelled);
  const intended = intendManagedPaths(managed, plan.etcDigests);
  if (plan.etcDigests.size > 0) await writeManagedPaths(host.root, intended);
  await applyTreeChanges(host.root, usrChanges, options);
  await applyTreeChanges(host.root, plan.etc, options);
  // Before what follows can fail: wrong labels would stay until the next apply.
  const [late, early] = partition(unlabelled, (name) => name === nodePaths.tmpfiles);
  await relabel(host.root, early, signal);
  if (plan.fragment !== undefined) {
    await beforeStep?.({ kind: 'tmpfiles', fragment: plan.fragment });
    await services.applyTmpfiles(plan.fragment, signal);
  }
  for (const change of plan.stateRemovals) {
    signal.throwIfAborted();
    await beforeStep?.(change);
    await removeStatePath(host.root, change.path);
  }
  await applyTreeChanges(host.root, fragmentChanges, options);

  if (late.length > 0) await relabel(host.root, late, signal);
  await forgetUnlabelledPaths(host.root);

  const settled = await managedAfterApply({ ...trees, managed: intended }, signal);
  await writeManagedPaths(host.root, settled);
  return settled;
}

/**
 * Compares the running root with what the next boot will have.
 *
 * @returns the paths that differ, sorted; none when a reboot would change nothing.
 * @throws LiveApplyRefused when the two can't be made equal without a reboot.
 */
export async function verifyLive(
  apply: Omit<LiveApply, 'services' | 'relabel' | 'beforeStep'>,
): Promise<readonly string[]> {
  const { host, booted, staged, signal } = apply;
  const managed = await readManagedPaths(host.root);
  const plan = await planLiveApply({ root: host.root, booted, staged, managed }, signal);
  const differing = new Set([...plan.usr, ...plan.etc, ...plan.stateRemovals].map((change) => change.path));
  for (const line of parseTmpfiles((await readFragment(staged.root)) ?? '')) {
    if (!(await isDelivered(host.root, line))) differing.add(line.path);
  }
  return [...differing].sort();
}

/** A path outside of /etc and /usr; one under them is the tree's, whatever a fragment says. */
async function removeStatePath(root: string, name: string): Promise<void> {
  if (!isStatePath(path.posix.normalize(name))) return;
  await using tree = new HostTree({ root });
  const location = await tree.find(name);
  if (location === undefined) return;
  const stats = await tree.stat(location.name);
  if (stats === undefined) return;
  const directory = await tree.parentOf(location.name);
  const base = path.posix.basename(location.name);
  if (!stats.isDirectory()) return await directory.remove(base);
  // What is in it may be the admin's.
  await removeIfEmpty(directory, base);
}

async function isDelivered(root: string, line: TmpfilesLine): Promise<boolean> {
  await using tree = new HostTree({ root });
  // A user's link on the way is not followed; what was delivered is not where it leads, and not at this path either.
  const location = await tree.find(line.path);
  const stats = location === undefined ? undefined : await tree.stat(location.name);
  if (location === undefined || stats === undefined) return false;
  switch (line.type.charAt(0)) {
    case 'f':
      if (!stats.isFile()) return false;
      if (!line.type.includes('~')) return true;
      return await hasContents(tree, location.name, Buffer.from(line.argument, 'base64'));
    case 'd':
      return stats.isDirectory();
    case 'L':
      return stats.isSymbolicLink();
    default:
      return true;
  }
}

/** A file of another size is not read: it may be of any size. */
async function hasContents(tree: HostTree, name: string, wanted: Buffer): Promise<boolean> {
  const directory = await tree.parentOf(name);
  const contents = await directory.read(path.posix.basename(name), wanted.byteLength);
  return contents?.equals(wanted) === true;
}

function partition<T>(
  values: readonly T[],
  belongs: (value: T) => boolean,
): readonly [readonly T[], readonly T[]] {
  return [values.filter(belongs), values.filter((value) => !belongs(value))];
}
