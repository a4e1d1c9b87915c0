import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { sameList } from '../../../machineconfig/diff.ts';
import { readMergedEtc } from '../../files/etc-trees.ts';
import { compareTrees } from '../../files/read-tree.ts';
import { ownersSetAtBoot, readFragment } from '../../files/tmpfiles-fragment.ts';
import { LiveApplyRefused, planTreeChanges } from '../../files/tree-change.ts';
import {
  ABSENT,
  type ContentDigest,
  contentDigest,
  readTreeEntry,
  sameEntry,
  type TreeEntry,
} from '../../files/tree-entry.ts';
import type { WriteStep } from '../../files/write-step.ts';
import type { NodeDeployment } from '../../os/backend.ts';
import { imageKernelArguments, nextKernelArguments } from '../../os/ostree/kernel-arguments.ts';
import { isManaged, type ManagedPaths } from '../../records/managed-paths.ts';
import { type LiveTrees, suffices } from './managed-etc.ts';

/** Everything that tells the running root from what the next boot will have. */
export interface LivePlan {
  readonly usr: readonly WriteStep[];
  readonly etc: readonly WriteStep[];
  /** What each changed path of /etc will hold, and before that what it holds on the way there. */
  readonly etcDigests: ManagedPaths;
}

/** /usr/etc only holds the defaults for /etc, and the booted ones stay the base of its merge until the reboot. */
const SKIPPED_IN_USR: ReadonlySet<string> = new Set(['/usr/etc']);

/** Where ostree and the distributions keep kernel, initramfs and modules (ostree "Adapting existing systems"). */
const KERNEL_DIRECTORIES = ['/usr/lib/modules/', '/usr/lib/ostree-boot/'];

/**
 * What belongs to the running host on a deployment's top level, or is compared on its own. With composefs, ostree
 * writes the image that it mounts the deployment from beside the files: another one for each content, whatever differs.
 */
const NOT_OF_THE_IMAGE: ReadonlySet<string> = new Set([
  '.ostree.cfs',
  'etc',
  'usr',
  'var',
  'boot',
  'sysroot',
  'run',
  'tmp',
  'proc',
  'sys',
  'dev',
]);

/**
 * Compares the running root with what the next boot will have: /usr as a whole, /etc by ostree's three-way merge. State
 * is not the image's (daemon/content/write/write-content.ts).
 *
 * @throws LiveApplyRefused when only a reboot can bring the difference about: another kernel, other kernel arguments,
 *   other top-level links, an edit that can't be merged.
 */
export async function planLiveApply(trees: LiveTrees, signal: AbortSignal): Promise<LivePlan> {
  await refuseOtherKernelArguments(trees);
  await refuseOtherTopLevel(trees);
  const { root, staged } = trees;
  const difference = await compareTrees(
    path.join(root, 'usr'),
    path.join(staged.root, 'usr'),
    '/usr',
    SKIPPED_IN_USR,
    signal,
  );
  const usr = planTreeChanges({ ...difference, source: (name) => path.join(staged.root, name) });
  refuseOtherKernel(usr);
  await requireOwnUsr(staged);
  const etc = await planEtc(trees, signal);
  return { usr, ...etc };
}

/** Everything would count as removed where a deployment is one file system image and its directory is empty. */
async function requireOwnUsr({ root }: NodeDeployment): Promise<void> {
  if ((await readTreeEntry(path.join(root, 'usr')))?.kind === 'directory') return;
  throw new LiveApplyRefused(`${root} has no /usr to read; only a reboot brings what the image has`);
}

/** Compares /etc with what the next boot will have. @throws LiveApplyRefused for an edit that can't be merged. */
export async function planEtc(
  { root, booted, staged, managed }: LiveTrees,
  signal: AbortSignal,
): Promise<Pick<LivePlan, 'etc' | 'etcDigests'>> {
  const isOwn = (name: string, digest: ContentDigest) => isManaged(managed, name, digest);
  const { trees, target, inImage } = await readMergedEtc({ root, booted, staged }, isOwn, signal);
  const owners = ownersSetAtBoot(await readFragment(staged.root));
  const etc = planTreeChanges({
    current: trees.running,
    target,
    source: inImage,
    suffices: (name, current, wanted) =>
      suffices(owners, name, current, wanted) ||
      (isLeftToNode(current, trees.base.get(name), wanted) && !isOwn(name, contentDigest(current))),
  });
  return {
    etc,
    etcDigests: new Map(etc.map(({ name }) => [name, digestsOf(trees.running.get(name), target.get(name))])),
  };
}

/**
 * A directory that both images have with the same mode and owner stays as the node has it. ostree's merge would give it
 * the images' at the next boot, and systemd-tmpfiles then again what the host's fragments say, as of polkit's rules.d;
 * without a boot nothing would.
 */
function isLeftToNode(running: TreeEntry, booted: TreeEntry | undefined, staged: TreeEntry): boolean {
  return running.kind === 'directory' && staged.kind === 'directory' && sameEntry(booted, staged);
}

/** A rename replaces neither a directory by something else nor the reverse: for a moment there is nothing. */
function digestsOf(now: TreeEntry | undefined, next: TreeEntry | undefined): readonly ContentDigest[] {
  const goesFirst = next !== undefined && (now?.kind === 'directory') !== (next.kind === 'directory');
  return [contentDigest(next), ...(now !== undefined && goesFirst ? [ABSENT] : [])];
}

async function refuseOtherKernelArguments({ booted, staged }: LiveTrees): Promise<void> {
  if (sameList(booted.kernelArguments, staged.kernelArguments)) return;
  if (await differOnHostOnly({ booted, staged })) return;
  throw new LiveApplyRefused(
    `kernel arguments take effect at boot only: running with "${booted.kernelArguments.join(' ')}", staged "${staged.kernelArguments.join(' ')}"`,
  );
}

/**
 * Somebody may have changed the booted deployment's arguments since Shale made it. The staged one has all of its
 * image's again, for the next reboot; until then what differs is reported as drift, as in standard mode.
 */
async function differOnHostOnly({ booted, staged }: Pick<LiveTrees, 'booted' | 'staged'>): Promise<boolean> {
  const bootedImage = await imageKernelArguments(booted.root);
  const stagedImage = await imageKernelArguments(staged.root);
  if (!sameList(bootedImage, stagedImage)) return false;
  const extra = { remove: booted.addedKernelArguments ?? [], add: [] };
  const expected = nextKernelArguments({ booted: booted.kernelArguments, bootedImage, stagedImage, extra });
  return sameList(expected, staged.kernelArguments);
}

function refuseOtherKernel(changes: readonly WriteStep[]): void {
  const kernel = changes.find((change) =>
    KERNEL_DIRECTORIES.some((directory) => change.name.startsWith(directory)),
  );
  if (kernel === undefined) return;
  throw new LiveApplyRefused(`${kernel.name} differs: a kernel and its modules take effect at boot only`);
}

/**
 * Links and directories beside /usr, /etc and /var can't be changed in a running deployment: ostree makes it immutable.
 */
async function refuseOtherTopLevel({ booted, staged }: LiveTrees): Promise<void> {
  const names = new Set([...(await readdir(booted.root)), ...(await readdir(staged.root))]);
  for (const name of names) {
    if (NOT_OF_THE_IMAGE.has(name)) continue;
    const [now, next] = [
      await readTreeEntry(path.join(booted.root, name)),
      await readTreeEntry(path.join(staged.root, name)),
    ];
    if (!sameEntry(now, next)) {
      throw new LiveApplyRefused(`/${name} differs: a deployment's top level takes effect at boot only`);
    }
  }
}
