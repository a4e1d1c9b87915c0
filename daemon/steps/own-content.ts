import path from 'node:path';
import { endForce, isForced } from '../content/drift/drift.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { desiredTree } from '../content/entries/desired-tree.ts';
import { byCause, managedContent } from '../content/managed-content.ts';
import { restoreContent } from '../content/write/restore-content.ts';
import { ForeignChangeError } from '../content/write/write-content.ts';
import { HostTree } from '../files/host-tree.ts';
import { imageEtcIn } from '../files/image-tree.ts';
import { readTree } from '../files/read-tree.ts';
import { contentDigest } from '../files/tree-entry.ts';
import { etcOfImage } from '../files/units-of-image.ts';
import { readLeftOut } from '../records/left-out.ts';
import type { ManagedPaths } from '../records/managed-paths.ts';
import { type DiskWork, writeTarget } from './disk-work.ts';

/**
 * Ensures that what the node's config names is as it was rendered before an image takes its place: ostree's merge would
 * carry an edit into that image for ever. With the force file it is restored, and the permission ends.
 *
 * @throws ForeignChangeError where somebody has changed it, before anything is done.
 */
export async function requireOwnContent({ ports, current, disk, signal }: DiskWork): Promise<void> {
  const { root } = ports.host;
  const content = await managedContent(root, current);
  if (content === undefined || disk === 'Uncertain') return;
  if (await isForced(root)) {
    await restoreContent(writeTarget(ports), content, signal);
    await endForce(root);
    return;
  }
  const drifts = await verifyWithLabels(ports, content, signal);
  const { byHand } = byCause(drifts, await readLeftOut(root));
  if (byHand.length > 0) throw new ForeignChangeError(byHand);
}

/** What an update finds on the disk. */
interface ContentOnDisk extends Pick<DiskWork, 'current' | 'disk' | 'signal'> {
  /** The running root. */
  readonly root: string;
}

/**
 * What the node's config names in /etc is no admin's edit, whatever the records say: after requireOwnContent it is as
 * it was rendered, and an update that is resumed, or rolled back, brings all of it to its target without asking.
 *
 * @param next what the target's image carries, for an update that may have written some of it.
 * @returns the digests of what lies at those paths now.
 */
export async function contentOfConfigs(
  { root, current, disk, signal }: ContentOnDisk,
  next: ManagedContent | undefined,
): Promise<ManagedPaths> {
  const contents = [await managedContent(root, current), disk === 'Uncertain' ? next : undefined];
  const managed = new Map<string, readonly string[]>();
  await using tree = new HostTree({ root });
  for (const content of contents) {
    if (content === undefined) continue;
    const desired = await desiredTree({ root }, content);
    const ofImage = content.delivery === 'Layered' ? await notInImage(root, signal) : [];
    for (const name of new Set([...desired.keys(), ...ofImage])) {
      // What can't be reached is nothing of Shale's.
      const location = await tree.find(name);
      if (location?.name.startsWith('/etc/') !== true) continue;
      managed.set(location.name, [contentDigest(await tree.entry(location.name))]);
    }
  }
  return managed;
}

/**
 * Also the enablement links that the base image has and the config removed: the running root no longer shows them.
 */
async function notInImage(root: string, signal: AbortSignal): Promise<Iterable<string>> {
  const image = await readTree(path.join(root, await imageEtcIn(root)), '/etc', signal);
  return (await etcOfImage(root, image)).differing;
}
