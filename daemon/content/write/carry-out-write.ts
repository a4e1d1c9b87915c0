import path from 'node:path';
import { errorMessage } from '../../../api/error-message.ts';
import { by } from '../../../api/order.ts';
import { PathError } from '../../files/host-file-error.ts';
import { HostTree, rootOf } from '../../files/host-tree.ts';
import { isRemoval, takeSteps, type WriteStep } from '../../files/write-step.ts';
import {
  intendManagedPaths,
  isManaged,
  isStatePath,
  type ManagedPaths,
  mergeManaged,
  settleManagedPaths,
  writeManagedPaths,
  writeStatePaths,
} from '../../records/managed-paths.ts';
import { type Drift, driftOf } from '../drift/drift.ts';
import { HASH_UP_TO } from '../entries/desired-tree.ts';
import { type planPasswords, SHADOW } from '../passwords.ts';
import { recordRoot, type WritePlace } from './content-write.ts';
import { stockName } from './observe-content.ts';
import { dropUnusedOriginals, keepOriginal, type Originals, writeOriginals } from './originals.ts';
import type { WritePlan } from './plan-write.ts';
import {
  closeWriteLog,
  finishOrUndoWrite,
  openWriteLog,
  type RecordsBefore,
  requireRoom,
  UnlabelledError,
  type WriteTarget,
} from './write-log.ts';

export interface WriteOptions {
  readonly signal: AbortSignal;
  /** Called, and waited for, before each step; to fail or be killed there must be harmless. */
  readonly beforeStep?: (step: string) => void | Promise<void>;
}

export interface Written {
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/** Somebody else changed what is to be written; nothing was written, or all of it was undone. */
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

/** A write failed, and what it had done so far could not be undone either: `errors` has both. */
export class UndoError extends AggregateError {
  override readonly name = 'UndoError';
}

/** All that a write is about to do, and the records as they are. */
export interface PlannedWrite {
  readonly plan: WritePlan;
  readonly passwords: ReturnType<typeof planPasswords>;
  readonly before: RecordsBefore;
  /** The record of state paths after the write. */
  readonly state: ManagedPaths;
}

/** Finds what would make a step fail before the first step is taken. @throws PathError, NoRoomError */
export async function requirePossible(target: WritePlace, { steps }: WritePlan): Promise<void> {
  await requireRoom(target, steps);
  const removed = new Set(steps.flatMap((step) => (isRemoval(step) ? [step.name] : [])));
  await using tree = new HostTree(target);
  for (const step of steps) {
    if (step.kind !== 'remove directory' || step.evenIfNotEmpty === 'leave') continue;
    if ((await namesInImage(target, step.name)).length > 0) {
      throw new PathError(
        `${step.name}: is a directory in the base image that is not empty, and what the config has in its place would delete what is in it; choose another path`,
      );
    }
    const names = (await (await tree.directory(step.name))?.list()) ?? [];
    const other = names.map((base) => path.posix.join(step.name, base)).find((name) => !removed.has(name));
    if (other === undefined) continue;
    throw new PathError(
      `${step.name}: is a directory with ${other} in it, which no config has; move what is in it, or name another path`,
    );
  }
}

/**
 * @returns what the image has in a directory, also if it is gone from the node. A config may not delete it: a layered
 *   image couldn't carry that deletion.
 */
async function namesInImage(target: WritePlace, name: string): Promise<readonly string[]> {
  if (!name.startsWith('/etc/')) return [];
  await using image = new HostTree({ root: target.imageRoot ?? target.root });
  const place = await stockName(image, name);
  // A link of the image that leads to a directory is replaced, not what it leads to.
  if ((await image.entry(place, HASH_UP_TO))?.kind !== 'directory') return [];
  return (await (await image.directory(place))?.list()) ?? [];
}

/**
 * Takes the steps of a write: all of them, or none.
 *
 * @param name of what is written, for an error.
 * @throws the signal's reason and the file system's errors after all was undone; UndoError when it could not be.
 */
export async function carryOutWrite(
  target: WriteTarget,
  planned: PlannedWrite,
  name: string,
  options: WriteOptions,
): Promise<Written> {
  const {
    plan,
    passwords: { changes },
    before,
    state,
  } = planned;
  const isOnRecord = sameOriginals(before.originals, plan.originals) && samePaths(before.state, state);
  if (plan.steps.length > 0 || changes.length > 0 || !isOnRecord) {
    try {
      await applyWriteSteps(target, planned, options);
    } catch (cause) {
      await finishOrUndoWrite(target).catch((error: unknown) => {
        if (error instanceof UnlabelledError) {
          const why = errorMessage(cause);
          throw new AggregateError([cause, error], `${why}; ${error.message}`, { cause });
        }
        throw new UndoError([cause, error], `${name} could not be written, nor the write undone`, { cause });
      });
      throw cause;
    }
  }
  const written = plan.steps.filter((step) => !isRemoval(step)).map((step) => step.name);
  return {
    written: [...written, ...(changes.length > 0 ? [SHADOW] : [])],
    removed: plan.steps
      .filter(isRemoval)
      .map((step) => step.name)
      .filter((removed) => !written.includes(removed)),
  };
}

async function applyWriteSteps(
  target: WriteTarget,
  { plan, passwords: { changes: passwords }, before, state }: PlannedWrite,
  { signal, beforeStep }: WriteOptions,
): Promise<void> {
  const { stateDir } = target;
  const announce = async (step: string): Promise<void> => {
    signal.throwIfAborted();
    await beforeStep?.(step);
  };
  await announce('log what is there');
  const after = new Map([...plan.released, ...plan.owned]);
  await openWriteLog(target, { steps: plan.steps, after, passwords }, before);
  await announce('record what is intended');
  const intended = intendManagedPaths(before.managed, etcOnly(after));
  await writeManagedPaths(recordRoot(target), intended);
  const intendedState = mergeManaged(state, before.state);
  if (intendedState.size > 0) await writeStatePaths(recordRoot(target), intendedState);
  await announce('keep originals');
  for (const name of plan.keep) await keepOriginal(target, stateDir, name);
  await writeOriginals(stateDir, plan.originals);
  const taken = new Set<string>();
  await takeSteps(target, plan.steps, {
    beforeStep: async ({ kind, name }, tree) => {
      await announce(`${kind} ${name}`);
      // What nobody had changed when the write was planned may have been since.
      if (!taken.has(name)) await requireUnchanged(tree, name, plan);
      taken.add(name);
    },
    signal,
  });
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
  // Until a staged deployment is booted, the running /etc keeps what Shale wrote there before.
  if (target.varRoot === undefined) {
    const managed = without(settleManagedPaths(intended), noLongerManaged(target, before, plan));
    await writeManagedPaths(target.root, managed);
  }
  if (intendedState.size > 0) await writeStatePaths(recordRoot(target), state);
  await announce('forget what was there');
  await closeWriteLog(stateDir);
  await dropUnusedOriginals(stateDir, plan.originals);
}

/** /var is the running root's, also while a staged deployment is written to. */
async function relabel(target: WriteTarget, steps: readonly WriteStep[], signal: AbortSignal): Promise<void> {
  for (const root of new Set([target.root, recordRoot(target)])) {
    const names = steps.map(({ name }) => name).filter((name) => rootOf(target, name) === root);
    await target.relabel(root, names, signal);
  }
}

/** @throws ForeignChangeError when a path doesn't hold what it held when the write was planned. */
async function requireUnchanged(tree: HostTree, name: string, { found }: WritePlan): Promise<void> {
  if (!found.has(name)) return;
  const drift = driftOf(name, await tree.entry(name, HASH_UP_TO), found.get(name));
  if (drift !== undefined) throw new ForeignChangeError([drift], 'while it was written');
}

/**
 * A path that got its original back no longer belongs to Shale, except what a live update leaves as the coming image
 * has it: until that image is booted, ostree takes it for an edit.
 */
function noLongerManaged(
  { imageRoot }: WriteTarget,
  { managed }: RecordsBefore,
  { released }: WritePlan,
): readonly string[] {
  const isAsItComes = ([name, digest]: readonly [string, string]) =>
    imageRoot !== undefined && isManaged(managed, name, digest);
  return [...released].filter((each) => !isAsItComes(each)).map(([name]) => name);
}

function without(record: ManagedPaths, names: Iterable<string>): ManagedPaths {
  const all = new Set(names);
  return new Map([...record].filter(([name]) => !all.has(name)));
}

function sameOriginals(a: Originals, b: Originals): boolean {
  const names = ({ paths, made, config }: Originals) =>
    JSON.stringify([[...paths.keys()].sort(), [...made].sort(), config]);
  return names(a) === names(b);
}

function etcOnly(digests: ReadonlyMap<string, string>): ManagedPaths {
  const etc = [...digests].filter(([name]) => name.startsWith('/etc/'));
  return new Map(etc.map(([name, digest]) => [name, [digest]]));
}

/** @returns the record of state paths once a write is done: all that it owns, also what it found as it should be. */
export function stateAfter({ owned, released }: WritePlan, before: ManagedPaths): ManagedPaths {
  return without(mergeManaged(stateOnly(owned), before), released.keys());
}

function samePaths(a: ManagedPaths, b: ManagedPaths): boolean {
  const text = (paths: ManagedPaths) => JSON.stringify([...paths].sort(by(([name]) => name)));
  return text(a) === text(b);
}

function stateOnly(digests: ReadonlyMap<string, string>): ManagedPaths {
  return new Map(
    [...digests].filter(([name]) => isStatePath(name)).map(([name, digest]) => [name, [digest]]),
  );
}
