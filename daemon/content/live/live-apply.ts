import { takeSteps, type WriteStep } from '../../files/write-step.ts';
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
import { type LivePlan, planEtc, planLiveApply } from './live-plan.ts';
import { type LiveTrees, managedAfterApply } from './managed-etc.ts';

export interface LiveApply {
  readonly host: Host;
  readonly relabel: Relabel;
  readonly booted: NodeDeployment;
  readonly staged: NodeDeployment;
  /** Content of /etc that belongs to Shale although it is not on record, and so is no local edit. */
  readonly handedOver?: ManagedPaths;
  /** Called, and waited for, before each step is taken: the journal. */
  readonly beforeStep?: ((step: WriteStep) => Promise<void>) | undefined;
  readonly signal: AbortSignal;
}

/**
 * Brings /usr and /etc of the running root to what the next boot will have, from the staged deployment's own content.
 * Killed at any point and called again, it ends in the same state: what it is about to put into /etc is on record
 * before.
 *
 * @returns the record of managed paths as it is now on disk.
 * @throws LiveApplyRefused before anything is changed; ServiceError and the file system's errors on the way.
 */
export async function applyLive(apply: LiveApply): Promise<ManagedPaths> {
  const { host, relabel, signal, beforeStep } = apply;
  const managed = mergeManaged(apply.handedOver ?? new Map(), await readManagedPaths(host.root));
  const trees = { root: host.root, booted: apply.booted, staged: apply.staged, managed };
  return carryOut(trees, await planLiveApply(trees, signal), { relabel, signal, beforeStep });
}

/**
 * Gives /etc the booted image's own version of what Shale had applied live of another one. bootc and rpm-ostree write a
 * staged image at shutdown, so after a loss of power the host boots the former image, with the /etc that was changed
 * while it ran. By the record nobody changed it by hand. What an admin edited stays.
 *
 * Killed at any point and called again, it ends in the same state.
 *
 * @param undo of which `booted` is the running root's image.
 * @returns the paths that were changed. @throws LiveApplyRefused before anything is changed; the file system's errors.
 */
export async function undoLive({
  host: { root },
  relabel,
  booted,
  signal,
}: Pick<LiveApply, 'relabel' | 'booted' | 'signal'> & {
  readonly host: Pick<Host, 'root'>;
}): Promise<readonly string[]> {
  const managed = await readManagedPaths(root);
  if (managed.size === 0) return [];
  const trees = { root, booted, staged: booted, managed };
  const { etc, etcDigests } = await planEtc(trees, signal);
  const own = etc.filter(({ name }) => managed.has(name));
  if (own.length === 0) return [];
  const digests = new Map([...etcDigests].filter(([name]) => managed.has(name)));
  await carryOut(trees, { usr: [], etc: own, etcDigests: digests }, { relabel, signal });
  return own.map(({ name }) => name);
}

/**
 * Takes the steps of a plan. Before the first of them, the records name what they put into /etc and what has no label
 * yet: after a kill, the same plan is made again and the same records are used.
 */
async function carryOut(
  trees: LiveTrees,
  { usr, etc, etcDigests }: LivePlan,
  { relabel, ...options }: Pick<LiveApply, 'relabel' | 'beforeStep' | 'signal'>,
): Promise<ManagedPaths> {
  const { root, managed } = trees;
  const steps = [...usr, ...etc];
  const changed = steps.map(({ name }) => name);
  const unlabelled = [...new Set([...changed, ...(await readUnlabelledPaths(root))])].sort();
  if (unlabelled.length > 0) await writeUnlabelledPaths(root, unlabelled);
  const intended = intendManagedPaths(managed, etcDigests);
  if (etcDigests.size > 0) await writeManagedPaths(root, intended);
  await takeSteps({ root }, steps, options);
  // Before what follows can fail: wrong labels would stay until the next apply.
  await relabel(root, unlabelled, options.signal);
  await forgetUnlabelledPaths(root);
  const settled = await managedAfterApply({ ...trees, managed: intended }, options.signal);
  await writeManagedPaths(root, settled);
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
  return [...new Set([...plan.usr, ...plan.etc].map(({ name }) => name))].sort();
}
