import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import type { Deployment } from '../os/backend.ts';
import { isManaged, type ManagedPaths } from '../records/managed-paths.ts';
import { mergeEtc } from '../tree/merge-etc.ts';
import { compareTrees, readTree, type Tree } from '../tree/read-tree.ts';
import { statePaths } from '../tree/tmpfiles-fragment.ts';
import { LiveApplyRefused, planTreeChanges, type TreeChange } from '../tree/tree-change.ts';
import {
  type ContentDigest,
  contentDigest,
  ignoreMissing,
  readTreeEntry,
  sameContent,
  sameEntry,
  type TreeEntry,
} from '../tree/tree-entry.ts';

export interface LiveTrees {
  /** The running root. */
  readonly root: string;
  readonly booted: Deployment;
  readonly staged: Deployment;
  readonly managed: ManagedPaths;
}

/** Everything that tells the running root from what the next boot will have. */
export interface LivePlan {
  readonly usr: readonly TreeChange[];
  readonly etc: readonly TreeChange[];
  /** What each changed path of /etc will hold. */
  readonly etcDigests: ReadonlyMap<string, ContentDigest>;
  /** State paths that the running image's fragment names and the staged image's doesn't, children first. */
  readonly stateRemovals: readonly TreeChange[];
  /** The staged image's tmpfiles fragment, if it has one. */
  readonly fragment?: string;
}

/** /usr/etc only holds the defaults for /etc, and the booted ones stay the base of its merge until the reboot. */
const SKIPPED_IN_USR: ReadonlySet<string> = new Set(['/usr/etc']);

/** Where ostree and the distributions keep kernel, initramfs and modules (ostree "Adapting existing systems"). */
const KERNEL_DIRECTORIES = ['/usr/lib/modules/', '/usr/lib/ostree-boot/'];

/** Top-level directories that belong to the running host or are compared on their own. */
const NOT_OF_THE_IMAGE: ReadonlySet<string> = new Set([
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
 * Compares the running root with what the next boot will have: /usr as a whole, /etc by ostree's three-way merge, state
 * paths by the images' tmpfiles fragments.
 *
 * @throws LiveApplyRefused when only a reboot can bring the difference about: another kernel, other kernel arguments,
 *   other top-level links, an edit that can't be merged.
 */
export async function planLiveApply(trees: LiveTrees, signal: AbortSignal): Promise<LivePlan> {
  refuseOtherKernelArguments(trees);
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
  const runningState = statePaths(await readFragment(root));
  const fragment = await readFragment(staged.root);
  const stagedState = statePaths(fragment);
  const delivered = new Set([...stagedState.files, ...stagedState.directories]);
  return {
    usr,
    ...etc,
    stateRemovals: [
      ...removals(runningState.files, delivered, 'other'),
      ...removals(runningState.directories, delivered, 'directory'),
    ],
    ...(fragment === undefined ? {} : { fragment: path.join(staged.root, nodePaths.tmpfiles) }),
  };
}

/** Everything would count as removed where a deployment is one file system image and its directory is empty. */
async function requireOwnUsr({ root }: Deployment): Promise<void> {
  if ((await readTreeEntry(path.join(root, 'usr')))?.kind === 'directory') return;
  throw new LiveApplyRefused(`${root} has no /usr to read; only a reboot brings what the image has`);
}

async function planEtc(
  { root, booted, staged, managed }: LiveTrees,
  signal: AbortSignal,
): Promise<Pick<LivePlan, 'etc' | 'etcDigests'>> {
  const trees = await readEtcTrees({ root, booted, staged }, signal);
  const target = mergeEtc(trees, {
    isManaged: (name, digest) => isManaged(managed, name, digest),
    ownerSetAtBoot: statePaths(await readFragment(root)).owners,
  });
  const owners = statePaths(await readFragment(staged.root)).owners;
  const etc = planTreeChanges({
    current: trees.running,
    target,
    source: (name) => path.join(staged.root, 'usr', name),
    suffices: (name, current, wanted) => suffices(owners, name, current, wanted),
  });
  return {
    etc,
    etcDigests: new Map(etc.map((change) => [change.path, contentDigest(target.get(change.path))])),
  };
}

interface EtcPlaces {
  readonly root: string;
  readonly booted: Deployment;
  readonly staged: Deployment;
}

/** Reads the three versions of /etc that are merged. */
export async function readEtcTrees(
  { root, booted, staged }: EtcPlaces,
  signal: AbortSignal,
): Promise<{ readonly base: Tree; readonly running: Tree; readonly staged: Tree }> {
  return {
    base: await readTree(path.join(booted.root, 'usr/etc'), '/etc', signal),
    running: await readTree(path.join(root, 'etc'), '/etc', signal),
    staged: await readTree(path.join(staged.root, 'usr/etc'), '/etc', signal),
  };
}

/** Owner and mode of a path that the image's fragment names are set by systemd-tmpfiles, at boot and after a live apply. */
function suffices(owners: ReadonlySet<string>, name: string, current: TreeEntry, wanted: TreeEntry): boolean {
  return owners.has(name) ? sameContent(current, wanted) : sameEntry(current, wanted);
}

/**
 * The record to keep once a live apply is done: every path of /etc that is as the staged image has it while the booted
 * image, which ostree will compare with, has it otherwise.
 *
 * An edit of the admin that is the same as the image's version counts as Shale's too; after a reboot ostree would see it
 * as no edit either.
 */
export async function managedAfterApply(trees: LiveTrees, signal: AbortSignal): Promise<ManagedPaths> {
  const { base, running, staged } = await readEtcTrees(trees, signal);
  const owners = statePaths(await readFragment(trees.staged.root)).owners;
  const managed = new Map<string, readonly ContentDigest[]>();
  for (const name of new Set([
    ...base.keys(),
    ...running.keys(),
    ...staged.keys(),
    ...trees.managed.keys(),
  ])) {
    const now = running.get(name);
    const wanted = staged.get(name);
    if (sameEntry(now, base.get(name))) continue;
    const digest = contentDigest(now);
    const isStaged =
      now === undefined || wanted === undefined ? now === wanted : suffices(owners, name, now, wanted);
    if (isStaged || isManaged(trees.managed, name, digest)) managed.set(name, [digest]);
  }
  return managed;
}

/** @returns the tmpfiles fragment of a root, or nothing when it has none. */
export async function readFragment(root: string): Promise<string | undefined> {
  return readFile(path.join(root, nodePaths.tmpfiles), 'utf8').catch(ignoreMissing);
}

function removals(
  old: ReadonlySet<string>,
  kept: ReadonlySet<string>,
  was: 'directory' | 'other',
): TreeChange[] {
  return [...old]
    .filter((name) => !kept.has(name))
    .sort()
    .reverse()
    .map((name) => ({ kind: 'remove', path: name, was }));
}

function refuseOtherKernelArguments({ booted, staged }: LiveTrees): void {
  if (booted.kernelArguments.join(' ') === staged.kernelArguments.join(' ')) return;
  throw new LiveApplyRefused(
    `kernel arguments take effect at boot only: running with "${booted.kernelArguments.join(' ')}", staged "${staged.kernelArguments.join(' ')}"`,
  );
}

function refuseOtherKernel(changes: readonly TreeChange[]): void {
  const kernel = changes.find((change) =>
    KERNEL_DIRECTORIES.some((directory) => change.path.startsWith(directory)),
  );
  if (kernel === undefined) return;
  throw new LiveApplyRefused(`${kernel.path} differs: a kernel and its modules take effect at boot only`);
}

/** Links and directories beside /usr, /etc and /var can't be changed in a running deployment: ostree makes it immutable. */
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
