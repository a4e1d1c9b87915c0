import path from 'node:path';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { PathError } from '../host-files/host-file-error.ts';
import { HostTree, type Location, rootOf } from '../host-files/host-tree.ts';
import { type WriteStep, writeIn } from '../host-files/write-step.ts';
import {
  intendManagedPaths,
  isManaged,
  type ManagedPaths,
  mergeManaged,
  readManagedPaths,
  settleManagedPaths,
  writeManagedPaths,
} from '../records/managed-paths.ts';
import { isStatePath, readStatePaths, writeStatePaths } from '../records/state-paths.ts';
import { imageEtcIn, inImageEtc } from '../tree/image-tree.ts';
import { contentDigest, readTreeEntry, sameEntry, type TreeEntry } from '../tree/tree-entry.ts';
import { type Desired, type DesiredTree, desiredTree, HASH_UP_TO } from './desired-tree.ts';
import { type Drift, driftOf } from './drift.ts';
import { type LocatedPath, locateContent, requireWritable } from './locate-content.ts';
import { isOfImage, type ManagedContent } from './managed-content.ts';
import {
  dropUnusedOriginals,
  keepOriginal,
  type Originals,
  originalAt,
  readOriginals,
  writeOriginals,
} from './originals.ts';
import { type PasswordChange, planPasswords, readPasswordFields, SHADOW } from './passwords.ts';
import {
  entryAfterRelease,
  type ObservedPath,
  planWrite,
  type SeenPath,
  type WritePlan,
} from './plan-write.ts';
import {
  closeWriteLog,
  finishOrUndoWrite,
  openWriteLog,
  type RecordsBefore,
  requireRoom,
  UnlabelledError,
  type WriteTarget,
} from './write-log.ts';

export { finishOrUndoWrite, type WriteTarget };

export interface ConfigWrite {
  /** What the last write left; the empty config on a tree that Shale has never written to. */
  readonly from: NodeConfig;
  readonly to: NodeConfig;
  /** Overwrite what somebody else changed. */
  readonly force?: boolean;
}

/** A write in whichever way the node has its content: written by its daemon, or brought by an image. */
export interface ContentWrite {
  /** What the last write left; undefined where nothing of Shale's is on the disk. */
  readonly from: ManagedContent | undefined;
  readonly to: ManagedContent;
  /** Overwrite what somebody else changed. */
  readonly force?: boolean;
  /** Remove what is no directory on the way to a path. */
  readonly clearsWays?: boolean;
  /** The image of `to` is booted: what is as it wants came with it, by the fragment for a machine's first boot. */
  readonly isBooted?: boolean;
  /** Only what lies in /etc, or only what lies outside of /etc and /usr; absent: all of it. */
  readonly scope?: 'etc' | 'state';
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  /** Called, and waited for, before each step; to fail or be killed there must be harmless. */
  readonly beforeStep?: (step: string) => void | Promise<void>;
}

export interface Written {
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/** Somebody else changed what is to be written; nothing was written, or all of it was taken back. */
export class ForeignChangeError extends Error {
  override readonly name = 'ForeignChangeError';
  readonly drifts: readonly Drift[];

  /** @param when it was changed, as text. */
  constructor(drifts: readonly Drift[], when = 'since the last write') {
    const all = drifts.map(({ message }) => message).join('; ');
    super(`changed on the node ${when}: ${all}. Revert the change, or force the write`);
    this.drifts = drifts;
  }
}

/** A write failed, and what it had done so far could not be taken back either: `errors` has both. */
export class UndoError extends AggregateError {
  override readonly name = 'UndoError';
}

/**
 * Brings a tree from one config to the next: files, directories, links, units with their links, SSH keys, passwords. What it takes
 * over from others is kept, and comes back when no config wants the path any more. It ends in the new state or, on any
 * failure, in the old one; killed half-way, finishOrUndoWrite restores the old one.
 *
 * Neither reloads nor restarts anything, and sets no kernel arguments.
 *
 * @returns the paths written and removed; none when the tree was right already.
 * @throws ForeignChangeError unless forced, NoRoomError, UnknownAccountError, PathError, PasswordError, all before anything is changed; the signal's
 *   reason and the file system's errors after all was taken back; UndoError when it could not be.
 */
export async function writeConfig(
  target: WriteTarget,
  { from, to, force = false }: ConfigWrite,
  options: WriteOptions,
): Promise<Written> {
  const written = (config: NodeConfig): ManagedContent => ({ delivery: 'Standard', config });
  return writeContent(target, { from: written(from), to: written(to), force }, options);
}

/**
 * As writeConfig, from content to content. What an image brings below /usr is left to the image; in /etc and in the state
 * that all images share, an image's content comes to the disk by this same write: with what it takes over from others kept,
 * and whole or not at all. A path whose owner the tree doesn't know is left out.
 *
 * @throws what writeConfig throws.
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
  return carryOut(target, planned, write.to.config.name, options);
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
 * Takes away what Shale has brought and no config has any more, and gives back what was there before. What is not as Shale
 * brought it is left alone.
 *
 * @param names of paths without links. @param kept those that the node's content has.
 * @throws what writeConfig throws.
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
  const planned = { plan, passwords: { changes: [], foreign: [] }, before };
  return carryOut(target, planned, names.join(', '), options);
}

/** Where a write is to come, and its records. */
type WritePlace = Omit<WriteTarget, 'setPasswords' | 'relabel'>;

/** All that a write is about to do, and the records as they are. */
interface PlannedWrite {
  readonly plan: WritePlan;
  readonly passwords: ReturnType<typeof planPasswords>;
  readonly before: RecordsBefore;
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
  const { from, to, clearsWays = false } = write;
  const before = await readRecords(target);
  const trees = { from: await treeOf(target, from), to: await treeOf(target, to) };
  const { originals } = before;
  const made = await directoriesMade(target, originals);
  const known = { managed: mergeManaged(before.managed, before.state), originals, made };
  const observed = await observe(target, { ...trees, write }, known, signal);
  const [paths, left] = partition(
    observed.map((path) => (isOfImageOf(write, path) ? { ...path, isManaged: true } : path)),
    (path) => isWritten(write, path),
  );
  // In standard mode the two configs are all there is to know; an image's content may be one of several on the disk.
  const kept = isByImage(from) || isByImage(to) ? [...before.state.keys()] : [];
  const plan = planWrite(paths, originals, made, {
    kept: new Set([...kept, ...left.map(({ location }) => location.name)]),
    clearsWays,
  });
  return { plan, passwords: await passwordsOf(target, write), before };
}

/** What a step would fail at is found before the first of them is taken. */
async function requirePossible(target: WritePlace, { steps }: WritePlan): Promise<void> {
  await requireRoom(target, steps);
  const removed = new Set(
    steps.flatMap((step) => (step.kind === 'remove' || step.kind === 'remove directory' ? [step.name] : [])),
  );
  await using tree = new HostTree(target);
  for (const step of steps) {
    if (step.kind !== 'remove directory' || step.evenIfNotEmpty === 'leave') continue;
    const names = (await (await tree.directory(step.name))?.list()) ?? [];
    const other = names.map((base) => path.posix.join(step.name, base)).find((name) => !removed.has(name));
    if (other === undefined) continue;
    throw new PathError(
      `${step.name}: is a directory with ${other} in it, which no config has; move what is in it, or name another path`,
    );
  }
}

/** @param name of what is written, for an error. @throws as writeConfig, but for what is found before anything is changed. */
async function carryOut(
  target: WriteTarget,
  { plan, passwords: { changes }, before }: PlannedWrite,
  name: string,
  { signal, beforeStep }: WriteOptions,
): Promise<Written> {
  if (plan.steps.length > 0 || changes.length > 0 || !sameOriginals(before.originals, plan.originals)) {
    const announce = async (step: string): Promise<void> => {
      signal.throwIfAborted();
      await beforeStep?.(step);
    };
    try {
      await applyWriteSteps(target, { plan, passwords: changes, before }, { announce, signal });
    } catch (cause) {
      await finishOrUndoWrite(target).catch((error: unknown) => {
        if (error instanceof UnlabelledError) {
          const why = cause instanceof Error ? cause.message : String(cause);
          throw new AggregateError([cause, error], `${why}; ${error.message}`, { cause });
        }
        throw new UndoError([cause, error], `${name} could not be written, nor the write undone`, { cause });
      });
      throw cause;
    }
  }
  const isRemoval = ({ kind }: { readonly kind: string }) => kind === 'remove' || kind === 'remove directory';
  const written = plan.steps.filter((step) => !isRemoval(step)).map((step) => step.name);
  return {
    written: [...written, ...(changes.length > 0 ? [SHADOW] : [])],
    removed: plan.steps
      .filter(isRemoval)
      .map((step) => step.name)
      .filter((removed) => !written.includes(removed)),
  };
}

async function treeOf(target: WritePlace, content: ManagedContent | undefined): Promise<DesiredTree> {
  return content === undefined ? new Map() : desiredTree(target, content.config, content.delivery);
}

function isByImage(content: ManagedContent | undefined): boolean {
  return content?.delivery === 'Layered';
}

/**
 * @returns whether a path is as the image's config wants it by the image itself: nobody's own was there before. A link that a
 *   disabled unit has in the base is taken away when the deployment's /etc is made (daemon/os/ostree/reset-managed-paths.ts).
 */
function isOfImageOf({ to, isBooted = false }: ContentWrite, { found, to: desired }: ObservedPath): boolean {
  if (!isByImage(to) || desired === undefined || !sameEntry(found, desired.entry)) return false;
  return isBooted || found === undefined;
}

/** @returns whether a write has to see to a path; one that it has not is as the image, or the running system, has it. */
function isWritten(
  { from, to, scope }: ContentWrite,
  { location: { name }, to: desired }: Pick<ObservedPath, 'location' | 'to'>,
): boolean {
  if (desired?.unknownOwner !== undefined) return false;
  if (scope === 'etc' && !name.startsWith('/etc/')) return false;
  if (scope === 'state' && !isStatePath(name)) return false;
  return !isOfImage(name) || !isByImage(desired === undefined ? from : to);
}

/**
 * Nothing is read where neither config has a password: a tree without users is none of a host. An image brings none; those of
 * standard mode are taken back in the image's deployment (daemon/steps/reboot.ts).
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

interface Steps {
  readonly plan: WritePlan;
  readonly passwords: readonly PasswordChange[];
  readonly before: RecordsBefore;
}

interface Taking {
  readonly announce: (step: string) => Promise<void>;
  readonly signal: AbortSignal;
}

async function applyWriteSteps(
  target: WriteTarget,
  { plan, passwords, before }: Steps,
  { announce, signal }: Taking,
): Promise<void> {
  const { stateDir } = target;
  await announce('log what is there');
  const after = new Map([...plan.released, ...plan.owned]);
  await openWriteLog(target, { steps: plan.steps, after, passwords }, before);
  await announce('record what is intended');
  const intended = intendManagedPaths(before.managed, etcOnly(after));
  await writeManagedPaths(recordRoot(target), intended);
  const state = mergeManaged(stateOnly(plan.owned), before.state);
  if (state.size > 0) await writeStatePaths(recordRoot(target), state);
  await announce('keep originals');
  for (const name of plan.keep) await keepOriginal(target, stateDir, name);
  await writeOriginals(stateDir, plan.originals);
  const found = new Map(plan.found);
  await using tree = new HostTree(target);
  for (const step of plan.steps) {
    await announce(`${step.kind} ${step.name}`);
    await requireUnchanged(tree, step, found);
    await writeIn(tree, step);
    found.delete(step.name);
  }
  if (passwords.length > 0) {
    await announce('set passwords');
    await target.setPasswords(
      target.root,
      new Map(passwords.map(({ user, after }) => [user, after])),
      signal,
    );
  }
  await announce('label');
  await relabel(target, plan.steps, signal);
  await announce('record what was done');
  // Until a staged deployment is booted, the running /etc still has what it had, and that is Shale's too.
  if (target.varRoot === undefined) await writeManagedPaths(target.root, settled(intended, plan));
  if (state.size > 0) await writeStatePaths(recordRoot(target), withoutReleased(state, plan));
  await announce('forget what was there');
  await closeWriteLog(stateDir);
  await dropUnusedOriginals(stateDir, plan.originals);
}

/** What lies in /var belongs to the running root, also while a deployment is written to. */
async function relabel(target: WriteTarget, steps: readonly WriteStep[], signal: AbortSignal): Promise<void> {
  for (const root of new Set([target.root, recordRoot(target)])) {
    const names = steps.map(({ name }) => name).filter((name) => rootOf(target, name) === root);
    await target.relabel(root, names, signal);
  }
}

/**
 * What nobody had changed when the write was planned may have been since.
 *
 * @param found what each path held then; a path that a step has been taken on is not looked at again.
 */
async function requireUnchanged(
  tree: HostTree,
  { name }: WriteStep,
  found: ReadonlyMap<string, TreeEntry | undefined>,
): Promise<void> {
  if (!found.has(name)) return;
  const drift = driftOf(name, await tree.entry(name, HASH_UP_TO), found.get(name));
  if (drift !== undefined) throw new ForeignChangeError([drift], 'while it was written');
}

/** A path that went back to its original is the image's or somebody's own, no longer Shale's. */
function settled(intended: ManagedPaths, plan: WritePlan): ManagedPaths {
  return withoutReleased(settleManagedPaths(intended), plan);
}

function withoutReleased(record: ManagedPaths, { released }: WritePlan): ManagedPaths {
  return new Map([...record].filter(([name]) => !released.has(name)));
}

/** What Shale's records have. */
interface Known {
  readonly managed: ManagedPaths;
  readonly originals: Originals;
  /** The directories of `originals.made`, without links. */
  readonly made: readonly string[];
}

async function observe(
  target: WritePlace,
  { write, ...trees }: { readonly from: DesiredTree; readonly to: DesiredTree; readonly write: ContentWrite },
  { managed, originals, made }: Known,
  signal: AbortSignal,
): Promise<readonly ObservedPath[]> {
  await using tree = new HostTree(target);
  // Of its own, so that neither closes the directories of the other.
  await using stock = new HostTree(target);
  const see = async (location: Location, from: Desired | undefined): Promise<SeenPath> => {
    signal.throwIfAborted();
    const found = await tree.entry(location.name, HASH_UP_TO);
    return {
      location,
      found,
      stock: await stockOf(stock, target, location.name),
      copy: await copyOf(target, location.name),
      isManaged: isManaged(managed, location.name, contentDigest(found)),
      from,
    };
  };
  const seen = new Map<string, SeenPath>();
  for (const each of await locateContent(tree, trees.from)) {
    if (each.location === undefined) throw each.unreachable;
    seen.set(each.location.name, await see(each.location, each.desired));
  }
  const released = [...seen].map(([name, path]) => [name, entryAfterRelease(path, originals, made)] as const);
  const paths = await locateContent(tree, trees.to, new Map(released));
  requireWritable(paths.filter(({ location, desired }) => isWrittenAt(write, location, desired)));
  const observed = new Map<string, ObservedPath>();
  for (const [name, path] of seen) {
    observed.set(name, { ...path, to: undefined, hardLinkSource: undefined, isLinked: false });
  }
  for (const { location, desired, source } of paths.filter(isReachable)) {
    const { name } = location;
    const path = seen.get(name) ?? (await see(location, undefined));
    const hardLinkSource = source?.name;
    const isLinked = hardLinkSource !== undefined && (await isOneFile(tree, name, hardLinkSource));
    // Of /etc in an image, the operating system has copied one file after the other.
    const isLinkedByImage = isByImage(write.to) && !isStatePath(name);
    // Its parents are those that the coming config has.
    observed.set(name, {
      ...{ ...path, location, to: desired, hardLinkSource },
      isLinked: isLinked || isLinkedByImage,
    });
  }
  return [...observed.values()];
}

function isWrittenAt(write: ContentWrite, location: Location | undefined, to: Desired): boolean {
  return location === undefined || isWritten(write, { location, to });
}

function isReachable(path: LocatedPath): path is LocatedPath & { readonly location: Location } {
  return path.location !== undefined;
}

async function isOneFile(tree: HostTree, a: string, b: string): Promise<boolean> {
  const [one, other] = [await tree.stat(a), await tree.stat(b)];
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

/** A deployment has its image's version of /etc beside its own; other paths have none. */
async function stockOf(tree: HostTree, target: WritePlace, name: string): Promise<ObservedPath['stock']> {
  if (!name.startsWith('/etc/')) return { place: '', entry: undefined };
  // The path has no links; one that the image has on its way is where this node has a directory, so there the image has nothing.
  const etc = (await tree.locate(await imageEtcIn(target.root))).name;
  const place = path.join(rootOf(target, etc), inImageEtc(etc, name));
  return { place, entry: await tree.entry(inImageEtc(etc, name), HASH_UP_TO) };
}

async function copyOf(target: WritePlace, name: string): Promise<ObservedPath['copy']> {
  const place = originalAt(target.stateDir, name);
  return { place, entry: await readTreeEntry(place, HASH_UP_TO) };
}

/** A staged deployment may have none of them, nor has a root from which an admin has removed those above them. */
async function directoriesMade(target: WritePlace, { made }: Originals): Promise<readonly string[]> {
  await using tree = new HostTree(target);
  const names: string[] = [];
  for (const recorded of made) {
    const { name, missingParents } = await tree.locate(recorded);
    if (missingParents.length === 0) names.push(name);
  }
  return names;
}

function sameOriginals(a: Originals, b: Originals): boolean {
  const names = (originals: Originals) =>
    JSON.stringify([[...originals.paths.keys()].sort(), [...originals.made].sort()]);
  return names(a) === names(b);
}

function etcOnly(digests: ReadonlyMap<string, string>): ManagedPaths {
  const etc = [...digests].filter(([name]) => name.startsWith('/etc/'));
  return new Map(etc.map(([name, digest]) => [name, [digest]]));
}

function stateOnly(digests: ReadonlyMap<string, string>): ManagedPaths {
  return new Map(
    [...digests].filter(([name]) => isStatePath(name)).map(([name, digest]) => [name, [digest]]),
  );
}

function partition<T>(
  values: readonly T[],
  belongs: (value: T) => boolean,
): readonly [readonly T[], readonly T[]] {
  return [values.filter(belongs), values.filter((value) => !belongs(value))];
}

function recordRoot({ root, varRoot }: WritePlace): string {
  return varRoot ?? root;
}
