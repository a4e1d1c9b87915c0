import { present } from '../../../api/present.ts';
import { applyTreeChanges } from '../../files/apply-tree-changes.ts';
import type { TreeChange } from '../../files/tree-change.ts';
import type { Host } from '../../host/host.ts';
import type { Relabel } from '../../host/selinux-labels.ts';
import type { NodeDeployment } from '../../os/backend.ts';
import {
  forgetUnlabelledPaths,
  intendManagedPaths,
  type ManagedPaths,
  mergeManaged,
  readManagedPaths,
  readUnlabelledPaths,
  writeManagedPaths,
  writeUnlabelledPaths,
} from '../../records/managed-paths.ts';
import { planLiveApply } from './live-plan.ts';
import { managedAfterApply } from './managed-etc.ts';

export interface LiveApply {
  readonly host: Host;
  readonly relabel: Relabel;
  readonly booted: NodeDeployment;
  readonly staged: NodeDeployment;
  /** What counts as Shale's own in /etc beyond the record, and so is no local edit. */
  readonly handedOver?: ManagedPaths;
  /** Called, and waited for, before each step is taken: the journal. */
  readonly beforeStep?: (step: TreeChange) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Brings /usr and /etc of the running root to what the next boot will have, from the staged deployment's own content. Killed at
 * any point and called again, it ends in the same state: what it is about to put into /etc is on record before.
 *
 * @returns the record of managed paths as it is now on disk.
 * @throws LiveApplyRefused before anything is changed; ServiceError and the file system's errors on the way.
 */
export async function applyLive(apply: LiveApply): Promise<ManagedPaths> {
  const { host, relabel, signal, beforeStep } = apply;
  const managed = mergeManaged(apply.handedOver ?? new Map(), await readManagedPaths(host.root));
  const trees = { root: host.root, booted: apply.booted, staged: apply.staged, managed };
  const plan = await planLiveApply(trees, signal);
  const options = { signal, ...present({ beforeStep }) };
  const changed = [...plan.usr, ...plan.etc].map((change) => change.path);
  const unlabelled = [...new Set([...changed, ...(await readUnlabelledPaths(host.root))])].sort();
  if (unlabelled.length > 0) await writeUnlabelledPaths(host.root, unlabelled);
  const intended = intendManagedPaths(managed, plan.etcDigests);
  if (plan.etcDigests.size > 0) await writeManagedPaths(host.root, intended);
  await applyTreeChanges(host.root, plan.usr, options);
  await applyTreeChanges(host.root, plan.etc, options);
  // Before what follows can fail: wrong labels would stay until the next apply.
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
  apply: Omit<LiveApply, 'relabel' | 'beforeStep'>,
): Promise<readonly string[]> {
  const { host, booted, staged, signal } = apply;
  const managed = await readManagedPaths(host.root);
  const plan = await planLiveApply({ root: host.root, booted, staged, managed }, signal);
  return [...new Set([...plan.usr, ...plan.etc].map((change) => change.path))].sort();
}
