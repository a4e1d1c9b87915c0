import { lstat, readFile, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { Host, ServiceManager } from '../host/host.ts';
import type { Relabel } from '../host/selinux-labels.ts';
import type { Deployment } from '../os/backend.ts';
import {
  forgetUnlabelledPaths,
  intendManagedPaths,
  type ManagedPaths,
  readManagedPaths,
  readUnlabelledPaths,
  writeManagedPaths,
  writeUnlabelledPaths,
} from '../records/managed-paths.ts';
import { applyTreeChanges } from '../tree/apply-tree-changes.ts';
import { resolveInRoot } from '../tree/resolve-in-root.ts';
import { parseTmpfiles, readFragment, type TmpfilesLine } from '../tree/tmpfiles-fragment.ts';
import type { TreeChange } from '../tree/tree-change.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';
import { planLiveApply } from './live-plan.ts';
import { managedAfterApply } from './managed-etc.ts';

export interface LiveApply {
  readonly host: Host;
  readonly services: ServiceManager;
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
  const managed = new Map([...(apply.handedOver ?? []), ...(await readManagedPaths(host.root))]);
  const trees = { root: host.root, booted: apply.booted, staged: apply.staged, managed };
  const plan = await planLiveApply(trees, signal);
  const options = { signal, ...present({ beforeStep }) };
  const usr = { name: '/usr', directory: path.join(host.root, 'usr') };
  const etc = { name: '/etc', directory: path.join(host.root, 'etc') };
  const [fragmentChanges, usrChanges] = partition(plan.usr, (change) => change.path === nodePaths.tmpfiles);

  const changed = [...plan.usr, ...plan.etc].map((change) => change.path);
  const unlabelled = [...new Set([...changed, ...(await readUnlabelledPaths(host.root))])].sort();
  if (unlabelled.length > 0) await writeUnlabelledPaths(host.root, unlabelled);
  const intended = intendManagedPaths(managed, plan.etcDigests);
  if (plan.etcDigests.size > 0) await writeManagedPaths(host.root, intended);
  await applyTreeChanges(usr, usrChanges, options);
  await applyTreeChanges(etc, plan.etc, options);
  if (plan.fragment !== undefined) {
    await beforeStep?.({ kind: 'tmpfiles', fragment: plan.fragment });
    await services.applyTmpfiles(plan.fragment, signal);
  }
  for (const change of plan.stateRemovals) {
    signal.throwIfAborted();
    await beforeStep?.(change);
    await removeStatePath(host.root, change.path);
  }
  await applyTreeChanges(usr, fragmentChanges, options);

  await relabel(host.root, unlabelled, signal);
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
  if (/^\/(etc|usr(?!\/local\/))(\/|$)/.test(path.posix.normalize(name))) return;
  const place = await resolveInRoot(root, name);
  if (place === undefined) return;
  const stats = await lstat(place).catch(ignoreMissing);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlink(place);
  await rmdir(place).catch((error: unknown) => {
    // What is in it may be the admin's.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTEMPTY') return;
    throw error;
  });
}

async function isDelivered(root: string, line: TmpfilesLine): Promise<boolean> {
  const place = await resolveInRoot(root, line.path);
  const stats = place === undefined ? undefined : await lstat(place).catch(ignoreMissing);
  if (place === undefined || stats === undefined) return false;
  switch (line.type.charAt(0)) {
    case 'f':
      if (!stats.isFile()) return false;
      if (!line.type.includes('~')) return true;
      return (await readFile(place)).equals(Buffer.from(line.argument, 'base64'));
    case 'd':
      return stats.isDirectory();
    case 'L':
      return stats.isSymbolicLink();
    default:
      return true;
  }
}

function partition<T>(
  values: readonly T[],
  belongs: (value: T) => boolean,
): readonly [readonly T[], readonly T[]] {
  return [values.filter(belongs), values.filter((value) => !belongs(value))];
}
