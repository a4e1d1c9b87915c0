import type { RollbackDeadline } from '../../api/annotation-requests.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { annotate } from '../node-request.ts';
import type { Places } from '../observe/cluster-watch.ts';
import { type Arrival, arrivalOfAll } from '../observe/pool-arrival.ts';
import { waitForArrival } from '../observe/wait-for-arrival.ts';
import { deadlineOf, isTried } from './decide-try.ts';

/** ms; the operator records what a pool runs in its next pass. */
const RECORDED_WITHIN = 60_000;
/** ms; a command that was interrupted cleans up, and ends. */
const LIFTED_WITHIN = 10_000;

/** A deadline of pools. */
export interface DeadlineToSet {
  readonly client: ApiClient;
  readonly places: Places;
  /** Of pools. */
  readonly names: readonly string[];
  readonly deadline: RollbackDeadline;
  readonly signal: AbortSignal;
}

/**
 * Sets a deadline on pools, and waits until the operator has recorded what each of them runs.
 *
 * @throws {CommandError} if somebody else was faster, or the operator refuses it or doesn't answer.
 */
export async function setDeadlines(setting: DeadlineToSet): Promise<void> {
  const { client, places, names, deadline, signal } = setting;
  for (const name of names) await retryOnConflict(() => set(client, name, deadline, signal));
  await waitForArrival({
    client,
    places,
    signal,
    timeout: RECORDED_WITHIN,
    look: (seen) => recordedArrival(names, deadline.id, seen),
    afterInterrupt: 'nothing was applied',
  });
  for (const name of names) {
    const { status } = await client.get(MachineConfigPools, name, { signal });
    const refused = status?.rollbackDeadline?.refused;
    if (refused !== undefined)
      throw new CommandError(`pool ${name} can't be rolled back, so nothing was applied: ${refused}`);
  }
}

/** Removes a deadline from those pools that have it, also in a command that was interrupted. */
export async function liftDeadlines(
  client: ApiClient,
  names: readonly string[],
  { id }: RollbackDeadline,
): Promise<void> {
  const signal = AbortSignal.timeout(LIFTED_WITHIN);
  for (const name of names)
    await retryOnConflict(async () => {
      const pool = await client.find(MachineConfigPools, name, { signal });
      const own = pool && deadlineOf(pool);
      if (pool !== undefined && own !== 'unreadable' && own?.id === id)
        await annotateDeadline(client, pool, null, signal);
    });
}

/** @param deadline null removes it. @throws {ApiError} a conflict when the pool has changed since it was read. */
export async function annotateDeadline(
  client: ApiClient,
  pool: MachineConfigPool,
  deadline: RollbackDeadline | null,
  signal: AbortSignal,
): Promise<void> {
  const text = deadline && JSON.stringify(deadline);
  await annotate(client, MachineConfigPools, pool, { [annotations.rollbackDeadline]: text }, signal);
}

async function set(
  client: ApiClient,
  name: string,
  deadline: RollbackDeadline,
  signal: AbortSignal,
): Promise<void> {
  const pool = await client.get(MachineConfigPools, name, { signal });
  if (isTried(pool)) throw new CommandError(`pool ${name}: somebody else began to try a change just now`);
  await annotateDeadline(client, pool, deadline, signal);
}

function recordedArrival(names: readonly string[], id: string, { pools }: ObservedCluster): Arrival {
  return arrivalOfAll(
    names.map((name) => {
      const pool = pools.find(({ metadata }) => metadata.name === name);
      const isRecorded = pool?.status?.rollbackDeadline?.id === id;
      return isRecorded
        ? { name }
        : { name, missing: 'the operator has not recorded yet what its nodes run' };
    }),
  );
}
