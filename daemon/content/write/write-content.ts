import path from 'node:path';
import { emptyNodeConfig } from '../../../machineconfig/node-config.ts';
import { HostTree } from '../../files/host-tree.ts';
import { contentDigest, sameEntry } from '../../files/tree-entry.ts';
import { isManaged, mergeManaged, readManagedPaths, readStatePaths } from '../../records/managed-paths.ts';
import { desiredTree, HASH_UP_TO } from '../entries/desired-tree.ts';
import { planPasswords, readPasswordFields } from '../passwords.ts';
import {
  carryOutWrite,
  ForeignChangeError,
  type PlannedWrite,
  requirePossible,
  stateAfter,
  UndoError,
  type WriteOptions,
  type Written,
} from './carry-out-write.ts';
import { type ContentWrite, isByImage, isWritten, recordRoot, type WritePlace } from './content-write.ts';
import { copyOf, directoriesMade, observeContent } from './observe-content.ts';
import { type Originals, readOriginals } from './originals.ts';
import { type ObservedPath, partition, planWrite } from './plan-write.ts';
import { finishOrUndoWrite, type RecordsBefore, type WriteTarget } from './write-log.ts';

export {
  type ContentWrite,
  ForeignChangeError,
  finishOrUndoWrite,
  UndoError,
  type WriteOptions,
  type WriteTarget,
  type Written,
};

/**
 * Brings a tree from one content to the next: files, directories, links, units with their links, SSH keys, passwords.
 * What it takes over from others is kept, and comes back when no config wants the path any more. It ends in the new
 * state or, on any failure, in the old one; killed half-way, finishOrUndoWrite restores the old one.
 *
 * What an image brings below /usr is left to the image; in /etc and in the state that all images share, an image's
 * content comes to the disk as that of standard mode does. A path of an image whose owner the tree doesn't know is left
 * out.
 *
 * Neither reloads nor restarts anything, and sets no kernel arguments.
 *
 * @returns the paths written and removed; none when the tree was right already.
 * @throws ForeignChangeError unless forced, NoRoomError, UnknownAccountError, PathError, PasswordError, all before
 *   anything is changed; the signal's reason and the file system's errors after all was undone; UndoError when it could
 *   not be.
 */
export async function writeContent(
  target: WriteTarget,
  write: ContentWrite,
  options: WriteOptions,
): Promise<Written> {
  await finishOrUndoWrite(target);
  const planned = await planContent(target, write, options.signal);
  const foreign = [...planned.plan.foreign, ...planned.passwords.foreign];
  if (write.force !== true && foreign.length > 0) throw new ForeignChangeError(foreign);
  await requirePossible(target, planned.plan);
  return carryOutWrite(target, planned, write.to.config.name, options);
}

/**
 * Checks whether a write could be carried out as things are; nothing is changed.
 *
 * @throws UnknownAccountError, PathError, NoRoomError, the file system's errors.
 */
export async function checkContent(
  target: WritePlace,
  write: ContentWrite,
  signal: AbortSignal,
): Promise<void> {
  const { plan } = await planContent(target, write, signal);
  await requirePossible(target, plan);
}

/**
 * Takes away what Shale has brought and no config has any more, and gives back what was there before. What is not as
 * Shale brought it is left alone.
 *
 * @param names of paths without links. @param kept those that the node's content has.
 * @throws what writeContent throws.
 */
export async function releasePaths(
  target: WriteTarget,
  { names, kept }: { readonly names: readonly string[]; readonly kept: ReadonlySet<string> },
  options: WriteOptions,
): Promise<Written> {
  await finishOrUndoWrite(target);
  const before = await readRecords(target);
  await using tree = new HostTree(target);
  const paths: ObservedPath[] = [];
  for (const name of names) {
    const location = await tree.locate(name);
    const found = await tree.entry(location.name, HASH_UP_TO);
    if (location.name !== name || !isManaged(before.state, name, contentDigest(found))) continue;
    const nothing = { place: '', entry: undefined };
    paths.push({
      location,
      found,
      stock: nothing,
      copy: await copyOf(target, name),
      isManaged: true,
      from: { entry: found, parents: { mode: 0o755, uid: 0, gid: 0 } },
      to: undefined,
      hardLinkSource: undefined,
      isLinked: false,
    });
  }
  const plan = planWrite(paths, before.originals, await directoriesMade(target, before.originals), {
    kept: new Set([...kept, ...before.originals.paths.keys()]),
  });
  const planned = {
    plan: { ...plan, originals: { ...plan.originals, config: before.originals.config } },
    passwords: { changes: [], foreign: [] },
    before,
    state: stateAfter(plan, before.state),
  };
  return carryOutWrite(target, planned, names.join(', '), options);
}

async function readRecords(target: WritePlace): Promise<RecordsBefore> {
  return {
    originals: await readOriginals(target.stateDir),
    managed: await readManagedPaths(recordRoot(target)),
    state: (await readStatePaths(recordRoot(target))) ?? new Map(),
  };
}

async function planContent(
  target: WritePlace,
  write: ContentWrite,
  signal: AbortSignal,
): Promise<PlannedWrite> {
  const { from, to, clearsObstacles = false } = write;
  const before = await readRecords(target);
  const trees = {
    from: from === undefined ? new Map() : await desiredTree(target, from),
    to: await desiredTree(target, to),
  };
  const { originals } = before;
  const recorded = await directoriesMade(target, originals);
  const known = { managed: mergeManaged(before.managed, before.state), originals, made: recorded };
  const observed = await observeContent(target, { ...trees, write }, known, signal);
  const [paths, left] = partition(
    observed.map((path) => (isOfImageOf(target, write, path) ? { ...path, isManaged: true } : path)),
    (path) => isWritten(write, path),
  );
  const made = [...recorded, ...(isByImage(from) ? await madeByImage(target, observed) : [])];
  // In standard mode the two configs are all there is to know; an image's content may be one of several on the disk.
  const kept = isByImage(from) || isByImage(to) ? [...before.state.keys()] : [];
  const plan = planWrite(paths, originals, made, {
    kept: new Set([...kept, ...left.map(({ location }) => location.name)]),
    clearsObstacles,
  });
  const config = configAfter(target, write, originals);
  return {
    plan: { ...plan, originals: { ...plan.originals, config } },
    passwords: await passwordsOf(target, write),
    before,
    // In standard mode the two configs are all there is to know: the write has restored the rest itself.
    state: stateAfter(plan, isWithinStandard(target, write) ? new Map() : before.state),
  };
}

function isWithinStandard({ varRoot }: WritePlace, { from, to, scope }: ContentWrite): boolean {
  return !isByImage(from) && !isByImage(to) && varRoot === undefined && scope === undefined;
}

/** A staged deployment gets what the running root has already, or is to have after the boot. */
function configAfter({ varRoot }: WritePlace, { to }: ContentWrite, before: Originals): string | undefined {
  if (isByImage(to)) return undefined;
  return varRoot === undefined ? to.config.name : before.config;
}

/**
 * An image brings the parents of its paths, and no record names them. Where the coming config replaces a directory by
 * something else, the directories in it are removed with their content if they have the attributes of made parents.
 */
async function madeByImage(target: WritePlace, paths: readonly ObservedPath[]): Promise<readonly string[]> {
  const replaced = paths
    .filter(
      ({ found, to }) =>
        found?.kind === 'directory' && to?.entry !== undefined && to.entry.kind !== 'directory',
    )
    .map(({ location }) => location.name);
  await using tree = new HostTree(target);
  const parents = new Set<string>();
  for (const { from, location } of paths) {
    const above = replaced.find((name) => location.name.startsWith(`${name}/`));
    if (from === undefined || above === undefined) continue;
    let name = path.posix.dirname(location.name);
    for (; name.length > above.length; name = path.posix.dirname(name)) {
      const made = { kind: 'directory', ...from.parents } as const;
      if (sameEntry(await tree.entry(name, HASH_UP_TO), made)) parents.add(name);
    }
  }
  return [...parents];
}

/**
 * @returns whether a path is as the image's config wants it by the image itself: nobody's own was there before. The
 *   /etc of a deployment that is not booted yet was just made, with the links of units as the image's config wants them
 *   (daemon/os/ostree/reset-managed-paths.ts).
 */
function isOfImageOf(
  { varRoot }: WritePlace,
  { to, isBooted = false }: ContentWrite,
  { location: { name }, found, to: desired }: ObservedPath,
): boolean {
  if (!isByImage(to) || desired === undefined || !sameEntry(found, desired.entry)) return false;
  const isJustMade = varRoot !== undefined && name.startsWith('/etc/');
  return isBooted || isJustMade || found === undefined;
}

/**
 * Nothing is read if neither config has a password, so that a tree without users can be written. An image brings none;
 * those of standard mode are removed from the image's deployment (daemon/steps/prepare-boot.ts).
 */
async function passwordsOf(
  target: WritePlace,
  { from, to }: Pick<ContentWrite, 'from' | 'to'>,
): Promise<ReturnType<typeof planPasswords>> {
  if (isByImage(to)) return { changes: [], foreign: [] };
  const former = from === undefined || isByImage(from) ? emptyNodeConfig : from.config;
  const configs = { from: former, to: to.config };
  const has = configs.from.passwordHashes.size > 0 || configs.to.passwordHashes.size > 0;
  return has ? planPasswords(configs, await readPasswordFields(target.root)) : { changes: [], foreign: [] };
}
