import { by } from '../../api/order.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { HostTree } from '../host-files/host-tree.ts';
import { type WriteStep, writeIn } from '../host-files/write-step.ts';
import { sameEntry } from '../tree/tree-entry.ts';
import { type Desired, desiredTree, HASH_UP_TO } from './desired-tree.ts';
import { type ComparedHost, labelDrifts } from './label-drift.ts';
import { isOfImage, type ManagedContent } from './managed-content.ts';
import { adopt, removalOf } from './plan-write.ts';
import { type Written, writeConfig } from './write-config.ts';
import type { WriteTarget } from './write-log.ts';

/** The running root, and how its labels are compared. */
export type RestoreTarget = WriteTarget & ComparedHost;

/**
 * Puts back what somebody has changed of the content that Shale manages on the running root, SELinux labels too.
 *
 * @returns the paths written, or given their label, and those removed. @throws what writeConfig throws in standard mode;
 *   PathError, OsCommandError, the file system's errors.
 */
export async function restoreContent(
  target: RestoreTarget,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<Written> {
  const { written, removed } = await restoreTree(target, content, signal);
  const labelled = await restoreLabels(target, content, signal);
  return { written: [...new Set([...written, ...labelled])], removed };
}

/**
 * Gives the content that Shale manages on the running root the labels that the host's policy has for it.
 *
 * @returns the paths whose labels differed. @throws OsCommandError, the file system's errors.
 */
export async function restoreLabels(
  target: Pick<RestoreTarget, 'root' | 'relabel' | 'wrongLabels'>,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const drifts = await labelDrifts(target, content, signal);
  const names = drifts.map(({ name }) => name);
  if (names.length > 0) await target.relabel(target.root, names, signal);
  return drifts.map((drift) => drift.path);
}

async function restoreTree(
  target: WriteTarget,
  { config, delivery }: ManagedContent,
  signal: AbortSignal,
): Promise<Written> {
  switch (delivery) {
    case 'Standard':
      return writeConfig(target, { from: config, to: config, force: true }, { signal });
    case 'Layered':
      return restoreCarried(target, config, signal);
  }
}

/**
 * Puts back what an image's config has. /usr is left alone: it is read-only, and the next boot has it as the image does.
 * Each path is replaced at once, and it is harmless to repeat, so nothing is logged.
 */
async function restoreCarried(
  target: WriteTarget,
  config: NodeConfig,
  signal: AbortSignal,
): Promise<Written> {
  const desired = [...(await desiredTree(target, config, 'Layered'))].sort(by(([name]) => name));
  const isHardLink = ([, { hardLinkTo }]: (typeof desired)[number]) => hardLinkTo !== undefined;
  // What a hard link shares its inode with comes before it.
  const ordered = [...desired.filter((each) => !isHardLink(each)), ...desired.filter(isHardLink)];
  const steps: WriteStep[] = [];
  await using tree = new HostTree(target);
  for (const [name, each] of ordered) {
    signal.throwIfAborted();
    const planned = await stepsAt(tree, name, each);
    for (const step of planned) await writeIn(tree, step);
    steps.push(...planned);
  }
  await target.relabel(
    target.root,
    steps.map(({ name }) => name),
    signal,
  );
  const isRemoval = ({ kind }: WriteStep) => kind === 'remove' || kind === 'remove directory';
  const written = steps.filter((step) => !isRemoval(step)).map(({ name }) => name);
  return {
    written,
    removed: steps
      .filter(isRemoval)
      .map(({ name }) => name)
      .filter((name) => !written.includes(name)),
  };
}

async function stepsAt(tree: HostTree, name: string, desired: Desired): Promise<readonly WriteStep[]> {
  if (desired.unknownOwner !== undefined) return [];
  const location = await tree.locate(name);
  if (isOfImage(location.name)) return [];
  const { missingParents, blockedBy } = location;
  const found = missingParents.length > 0 ? undefined : await tree.entry(location.name, HASH_UP_TO);
  if (sameEntry(found, desired.entry)) return [];
  const source = desired.hardLinkTo;
  const hardLinkSource = source === undefined ? undefined : (await tree.locate(source)).name;
  const { step } = adopt({ location, hardLinkSource }, desired);
  const removal = removalOf(location.name, found, desired.entry);
  const parents = missingParents.map(
    (parent): WriteStep => ({ kind: 'directory', name: parent, isParent: true, ...desired.parents }),
  );
  return [
    ...(removal === undefined ? [] : [removal]),
    ...(step === undefined || blockedBy === undefined ? [] : [{ kind: 'remove', name: blockedBy } as const]),
    ...(step === undefined ? [] : [...parents, step]),
  ];
}
