import type { ManagedPaths } from '../../records/managed-paths.ts';
import { resolveInRoot } from '../../tree/resolve-in-root.ts';
import { readTreeEntry } from '../../tree/tree-entry.ts';
import { copyEntry } from '../../tree/write-step.ts';
import { deliveredInEtc, readDeliveries } from './delivered.ts';
import { pathsOfImage } from './owned-paths.ts';

/**
 * The delivered files that an image's config has as well: ostree would take them for an admin's edits, which shadow the
 * image's; by this they count as Shale's own, and the config wins.
 *
 * @param root the running root. @param stagedRoot of the image's deployment.
 */
export async function handedOverTo(root: string, stagedRoot: string): Promise<ManagedPaths> {
  const delivered = deliveredInEtc(await readDeliveries(root));
  if (delivered.size === 0) return new Map();
  const owned = await pathsOfImage(stagedRoot);
  return new Map(
    [...delivered].filter(([name]) => owned.has(name)).map(([name, digest]) => [name, [digest]]),
  );
}

/**
 * Sees to it that the next boot has every delivered file: one that the present config owned, and the next does not, would
 * be missing until the daemon runs, and without its CA the kubelet doesn't start it.
 *
 * @param root the running root. @param stagedRoot of the deployment that is the next boot.
 */
export async function carryCertificates(root: string, stagedRoot: string): Promise<void> {
  for (const name of deliveredInEtc(await readDeliveries(root)).keys()) {
    const from = await resolveInRoot(root, name);
    const to = await resolveInRoot(stagedRoot, name);
    if (from === undefined || to === undefined) continue;
    if ((await readTreeEntry(from))?.kind !== 'file' || (await readTreeEntry(to)) !== undefined) continue;
    await copyEntry(from, to);
  }
}
