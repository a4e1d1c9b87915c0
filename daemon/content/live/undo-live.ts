import { applyTreeChanges } from '../../files/apply-tree-changes.ts';
import type { Host } from '../../host/host.ts';
import type { Relabel } from '../../host/selinux-labels.ts';
import type { NodeDeployment } from '../../os/backend.ts';
import {
  forgetUnlabelledPaths,
  intendManagedPaths,
  readManagedPaths,
  writeManagedPaths,
  writeUnlabelledPaths,
} from '../../records/managed-paths.ts';
import { planEtc } from './live-plan.ts';
import { managedAfterApply } from './managed-etc.ts';

/**
 * Gives /etc the booted image's own version of what Shale had applied live of another one. bootc and rpm-ostree write a staged
 * image at shutdown, so after a loss of power the host boots the former image, with the /etc that was changed while it ran.
 * By the record nobody changed it by hand. What an admin edited stays.
 *
 * Killed at any point and called again, it ends in the same state.
 *
 * @param booted whose root is the running one.
 * @returns the paths that were changed. @throws LiveApplyRefused before anything is changed; the file system's errors.
 */
export async function undoLive({
  host: { root },
  relabel,
  booted,
  signal,
}: {
  readonly host: Pick<Host, 'root'>;
  readonly relabel: Relabel;
  readonly booted: NodeDeployment;
  readonly signal: AbortSignal;
}): Promise<readonly string[]> {
  const managed = await readManagedPaths(root);
  if (managed.size === 0) return [];
  const trees = { root, booted, staged: booted, managed };
  const { etc, etcDigests } = await planEtc(trees, signal);
  const own = etc.filter(({ path }) => managed.has(path));
  if (own.length === 0) return [];
  const names = own.map(({ path }) => path);
  await writeUnlabelledPaths(root, names);
  const digests = new Map([...etcDigests].filter(([name]) => managed.has(name)));
  const intended = intendManagedPaths(managed, digests);
  await writeManagedPaths(root, intended);
  await applyTreeChanges(root, own, { signal });
  await relabel(root, names, signal);
  await forgetUnlabelledPaths(root);
  await writeManagedPaths(root, await managedAfterApply({ ...trees, managed: intended }, signal));
  return names;
}
