import { MachineConfigs } from '../../api/machine-config.ts';
import { isConflict, isNotFound } from '../../cluster/api-client.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { type Arrival, arrivalOfAll, formatProgress, poolsArrival } from '../observe/pool-arrival.ts';
import { waitForArrival } from '../observe/wait-for-arrival.ts';
import { deadlineOf, type TriedChange, type Try, unconfirmedOf } from './decide-try.ts';
import { type DeadlineToSet, liftDeadlines, setDeadlines } from './pool-deadlines.ts';

/** A change that is about to be tried. */
export type TryToRun = DeadlineToSet & Pick<Try, 'changes'>;

/** ms; a command that was interrupted undoes the change, and ends. */
const UNDONE_WITHIN = 30_000;
/** ms after the deadline, for an operator that is busy or just restarts. */
const ROLLED_BACK_WITHIN = 300_000;

/**
 * Applies a change with the user's own rights, once the operator rolls its pools back at the deadline: nothing is ever
 * applied that nobody would roll back.
 *
 * @returns what undoes it.
 * @throws {CommandError} if the operator refuses the deadline; what was applied is undone.
 */
export async function applyUnderDeadline(run: TryToRun): Promise<readonly TriedChange[]> {
  const { client, changes, signal } = run;
  const written: TriedChange[] = [];
  try {
    await setDeadlines(run);
    for (const change of changes) {
      const { before, after } = change;
      const made =
        before === undefined
          ? await client.create(MachineConfigs, after, { signal })
          : await client.replace(MachineConfigs, after, { signal });
      written.push({ ...change, after: made });
      print(`MachineConfig ${made.metadata.name}: applied`);
    }
    return written;
  } catch (error) {
    await undo(run, written);
    throw error;
  }
}

/**
 * Waits until somebody confirms the change, and undoes it with the user's own rights if nobody does, its nodes fail, or
 * the command is interrupted. Without the command, the operator's rollback at the deadline is what is left.
 *
 * @throws {CommandError} if it is not confirmed.
 */
export async function awaitConfirmation(run: TryToRun, written: readonly TriedChange[]): Promise<void> {
  const { client, places, deadline, signal } = run;
  const timeout = Date.parse(deadline.until) - Date.now() + ROLLED_BACK_WITHIN;
  let isRolledBack = false;
  const look = (seen: ObservedCluster, now: number) => {
    isRolledBack = seen.pools.some((pool) => unconfirmedOf(pool) === deadline.id);
    return answerOf(run, seen, now);
  };
  try {
    await waitForArrival({ client, places, timeout, look, signal, afterInterrupt: 'the change is undone' });
    if (isRolledBack) throw new CommandError('the change was not confirmed, and is undone');
  } catch (error) {
    await undo(run, written);
    throw error;
  }
  print('the change is confirmed');
}

/** @returns it has arrived once no pool has the deadline any more. */
function answerOf({ names, deadline }: TryToRun, seen: ObservedCluster, now: number): Arrival {
  const parts = names.map((name) => {
    const pool = seen.pools.find(({ metadata }) => metadata.name === name);
    const own = pool && deadlineOf(pool);
    if (pool === undefined || own === undefined || own === 'unreadable' || own.id !== deadline.id)
      return { name };
    const progress = poolsArrival([name], seen, now);
    if (progress.kind === 'stopped') return { name, stopped: progress.why };
    const where =
      progress.kind === 'arrived'
        ? 'every node runs the change'
        : (formatProgress(pool) ?? 'the pool is not Updated yet');
    return { name, missing: `${where}; waiting until ${own.until} for shale try confirm` };
  });
  return arrivalOfAll(parts);
}

/** What somebody has changed since stays as it is, and the pools keep their deadline. */
async function undo({ client, names, deadline }: TryToRun, written: readonly TriedChange[]): Promise<void> {
  const signal = AbortSignal.timeout(UNDONE_WITHIN);
  const kept: string[] = [];
  for (const { before, after } of written.toReversed()) {
    const { name, uid, resourceVersion = '' } = after.metadata;
    try {
      if (before === undefined)
        await client.delete(MachineConfigs, name, {
          preconditions: { uid, resourceVersion },
          signal,
        });
      else
        await client.replace(
          MachineConfigs,
          { ...before, metadata: { ...before.metadata, resourceVersion } },
          { signal },
        );
      print(
        `MachineConfig ${name}: ${before === undefined ? 'deleted, as there was none before' : 'restored'}`,
      );
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      kept.push(name);
      print(`MachineConfig ${name}: somebody changed it since, so it stays as it is`);
    }
  }
  if (kept.length === 0) await liftDeadlines(client, names, deadline);
}
