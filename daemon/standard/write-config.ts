import path from 'node:path';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
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
import { readStatePaths } from '../records/state-paths.ts';
import { imageEtcIn, inImageEtc } from '../tree/image-tree.ts';
import { contentDigest, readTreeEntry, type TreeEntry } from '../tree/tree-entry.ts';
import { type Desired, type DesiredTree, desiredTree, HASH_UP_TO } from './desired-tree.ts';
import { type Drift, driftOf } from './drift.ts';
import {
  dropUnusedOriginals,
  keepOriginal,
  type Originals,
  originalAt,
  readOriginals,
  writeOriginals,
} from './originals.ts';
import { type PasswordChange, planPasswords, readPasswordFields, SHADOW } from './passwords.ts';
import { type ObservedPath, planWrite, type WritePlan } from './plan-write.ts';
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
  { signal, beforeStep }: WriteOptions,
): Promise<Written> {
  await finishOrUndoWrite(target);
  const before: RecordsBefore = {
    originals: await readOriginals(target.stateDir),
    managed: await readManagedPaths(recordRoot(target)),
  };
  const trees = { from: await desiredTree(target, from), to: await desiredTree(target, to) };
  const plan = planWrite(
    await observe(target, trees, await ownContent(target, before), signal),
    before.originals,
    await directoriesMade(target, before.originals),
  );
  const passwords = await passwordsOf(target, { from, to });
  const foreign = [...plan.foreign, ...passwords.foreign];
  if (!force && foreign.length > 0) throw new ForeignChangeError(foreign);
  const { changes } = passwords;
  if (plan.steps.length > 0 || changes.length > 0 || !sameOriginals(before.originals, plan.originals)) {
    await requireRoom(target, plan.steps);
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
        throw new UndoError([cause, error], `${to.name} could not be written, nor the write undone`, {
          cause,
        });
      });
      throw cause;
    }
  }
  const isRemoval = ({ kind }: { readonly kind: string }) => kind === 'remove' || kind === 'remove directory';
  return {
    written: [
      ...plan.steps.filter((step) => !isRemoval(step)).map(({ name }) => name),
      ...(changes.length > 0 ? [SHADOW] : []),
    ],
    removed: plan.steps.filter(isRemoval).map(({ name }) => name),
  };
}

/** Nothing is read where neither config has a password: a tree without users is none of a host. */
async function passwordsOf(
  target: WriteTarget,
  configs: Pick<ConfigWrite, 'from' | 'to'>,
): Promise<ReturnType<typeof planPasswords>> {
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
function settled(intended: ManagedPaths, { released }: WritePlan): ManagedPaths {
  return new Map([...settleManagedPaths(intended)].filter(([name]) => !released.has(name)));
}

/** @returns what is Shale's, by its records: also what an image has brought outside of /etc, where no merge takes it away. */
async function ownContent(target: WriteTarget, { managed }: RecordsBefore): Promise<ManagedPaths> {
  return mergeManaged(managed, (await readStatePaths(recordRoot(target))) ?? new Map());
}

async function observe(
  target: WriteTarget,
  trees: { readonly from: DesiredTree; readonly to: DesiredTree },
  managed: ManagedPaths,
  signal: AbortSignal,
): Promise<readonly ObservedPath[]> {
  await using tree = new HostTree(target);
  // Of its own, so that neither closes the directories of the other.
  await using stock = new HostTree(target);
  const from = await located(tree, trees.from);
  const to = await located(tree, trees.to, linksOnlyIn(trees.from, trees.to));
  const observed: ObservedPath[] = [];
  for (const [name, { location }] of new Map([...from, ...to])) {
    signal.throwIfAborted();
    const found = await entryAt(tree, location);
    const wanted = to.get(name)?.desired;
    const source = wanted?.hardLinkTo;
    observed.push({
      location,
      found,
      stock: await stockOf(stock, target, name),
      copy: await copyOf(target, name),
      isManaged: isManaged(managed, name, contentDigest(found)),
      from: from.get(name)?.desired,
      to: wanted,
      hardLinkSource: source === undefined ? undefined : (await tree.locate(source)).name,
    });
  }
  return observed;
}

/** A link that goes must not be followed: a directory may take its place. */
function linksOnlyIn(from: DesiredTree, to: DesiredTree): ReadonlySet<string> {
  const links = [...from].filter(([, { entry }]) => entry?.kind === 'symlink');
  return new Set(links.map(([name]) => name).filter((name) => to.get(name)?.entry?.kind !== 'symlink'));
}

/** By the name that the tree itself has for a path: two paths of a config may lead to one place. */
async function located(
  tree: HostTree,
  desired: DesiredTree,
  leaving?: ReadonlySet<string>,
): Promise<ReadonlyMap<string, { readonly location: Location; readonly desired: Desired }>> {
  const found = new Map<string, { readonly location: Location; readonly desired: Desired }>();
  for (const [name, each] of desired) {
    const location = await tree.locate(name, leaving);
    found.set(location.name, { location, desired: each });
  }
  return found;
}

/** Below what is no directory, or won't be one, is nothing. */
async function entryAt(tree: HostTree, { name, missingParents }: Location): Promise<TreeEntry | undefined> {
  return missingParents.length > 0 ? undefined : tree.entry(name, HASH_UP_TO);
}

/** A deployment has its image's version of /etc beside its own; other paths have none. */
async function stockOf(tree: HostTree, target: WriteTarget, name: string): Promise<ObservedPath['stock']> {
  if (!name.startsWith('/etc/')) return { place: '', entry: undefined };
  const location = await tree.locate(inImageEtc(await imageEtcIn(target.root), name));
  const place = path.join(rootOf(target, location.name), location.name);
  return { place, entry: await entryAt(tree, location) };
}

async function copyOf(target: WriteTarget, name: string): Promise<ObservedPath['copy']> {
  const place = originalAt(target.stateDir, name);
  return { place, entry: await readTreeEntry(place, HASH_UP_TO) };
}

/** A staged deployment may have none of them, nor has a root from which an admin has removed those above them. */
async function directoriesMade(target: WriteTarget, { made }: Originals): Promise<readonly string[]> {
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

function etcOnly(digests: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...digests].filter(([name]) => name.startsWith('/etc/')));
}

function recordRoot({ root, varRoot }: WriteTarget): string {
  return varRoot ?? root;
}
