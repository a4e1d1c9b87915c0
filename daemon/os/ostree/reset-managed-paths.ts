import path from 'node:path';
import { readMergedEtc } from '../../files/etc-trees.ts';
import { isTemporaryName } from '../../files/host-directory.ts';
import { readTree } from '../../files/read-tree.ts';
import { planTreeChanges } from '../../files/tree-change.ts';
import { takeSteps, type WriteStep } from '../../files/write-step.ts';
import type { NodeDeployment } from '../backend.ts';

interface MergedDeployments {
  /** The running root. */
  readonly root: string;
  readonly booted: Pick<NodeDeployment, 'root'>;
  /** The next boot, whose /etc the host's tool has merged from the running one. */
  readonly staged: Pick<NodeDeployment, 'root'>;
}

/**
 * Gives the next boot's /etc the image's own version of what Shale wrote into the running one. The host's tool has
 * taken such files for the admin's; its merge stands for everything that has nothing to do with Shale. Units are
 * enabled and disabled there as the image's config wants it.
 *
 * @param managed see OsBackend.finalizeStaged. @throws LiveApplyRefused when the two can't be merged.
 */
export async function resetManagedPaths(
  { root, booted, staged }: MergedDeployments,
  managed: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const places = { root, booted, staged };
  const isManaged = (name: string, digest: string) => managed.get(name) === digest;
  const { trees, ownerSetAtBoot, target, inImage } = await readMergedEtc(places, isManaged, signal);
  const steps = planTreeChanges({
    current: await readTree(path.join(staged.root, 'etc'), '/etc', signal),
    target,
    source: inImage,
  });
  const isLeftOfManaged = leftOf(managed);
  const own = steps.filter((step) => {
    const { name } = step;
    return (
      managed.has(name) ||
      ownerSetAtBoot.has(name) ||
      trees.notInImage.has(name) ||
      isTemporaryName(path.posix.basename(name)) ||
      isLeftOfManaged(step)
    );
  });
  await takeSteps({ root: staged.root }, own, { signal });
}

/** @returns whether a step removes a directory that the merge made only because of what Shale wrote into it. */
function leftOf(managed: ReadonlyMap<string, string>): (step: WriteStep) => boolean {
  const parents = new Set([...managed.keys()].flatMap(parentsOf));
  return ({ kind, name }) => kind === 'remove directory' && parents.has(name);
}

function parentsOf(name: string): readonly string[] {
  const parent = path.posix.dirname(name);
  return parent === '/' ? [] : [parent, ...parentsOf(parent)];
}
