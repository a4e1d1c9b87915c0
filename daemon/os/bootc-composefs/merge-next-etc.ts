import path from 'node:path';
import { readMergedEtc } from '../../files/etc-trees.ts';
import { readTree } from '../../files/read-tree.ts';
import { planTreeChanges } from '../../files/tree-change.ts';
import { isRemoval, takeSteps } from '../../files/write-step.ts';
import type { Relabel } from '../../host/selinux-labels.ts';

interface MergedRoots {
  /** The running root. */
  readonly root: string;
  /** Root of the next boot. */
  readonly next: string;
  readonly relabel: Relabel;
}

/**
 * What systemd-update-done leaves; without it the units that prepare a new image run in its first boot. bootc removes
 * it, too.
 */
const UPDATED = '/etc/.updated';

/**
 * Merges /etc of a deployment that is the next boot already from the running one: bootc merges only what is staged. It
 * becomes what a fresh deployment's would be, whatever it was before, with the image's own version of what Shale wrote.
 *
 * @param managed see OsBackend.finalizeStaged. @throws LiveApplyRefused when the two can't be merged.
 */
export async function mergeNextEtc(
  { root, next, relabel }: MergedRoots,
  managed: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const places = { root, booted: { root }, staged: { root: next } };
  const isManaged = (name: string, digest: string) => managed.get(name) === digest;
  const { trees, target: merged, inImage } = await readMergedEtc(places, isManaged, signal);
  const target = new Map(merged);
  target.delete(UPDATED);
  const steps = planTreeChanges({
    current: await readTree(path.join(next, 'etc'), '/etc', signal),
    target,
    // The merge takes each entry from one of the two trees, as it is there.
    source: (name) => (target.get(name) === trees.running.get(name) ? path.join(root, name) : inImage(name)),
  });
  await takeSteps({ root: next }, steps, { signal });
  await relabel(
    next,
    steps.filter((step) => !isRemoval(step)).map(({ name }) => name),
    signal,
  );
}
