import { Command } from 'commander';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { toSeconds } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import {
  type AgreementFlags,
  agreementBy,
  onTerminal,
  type Plan,
  withAgreementFlags,
} from '../command-line/agreement.ts';
import { type ClusterFlags, onCluster, readAll, withClusterFlags } from '../command-line/cluster-access.ts';
import { CommandError, poolNamed } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { planOfRollback } from '../history/rollback-command.ts';
import type { Places } from '../observe/cluster-watch.ts';
import { deadlineOf, isTried, unconfirmedOf } from './decide-try.ts';
import { annotateDeadline } from './pool-deadlines.ts';

const POOLS = 'pools; default: all in which a change is being tried';

/** `shale try confirm`: keeps what is being tried. */
export function confirmCommand(): Command {
  const command = new Command('confirm')
    .description('Keep a change that is being tried.')
    .argument('[tried-pool...]', POOLS);
  return withClusterFlags(command).action((names: readonly string[], _own: ClusterFlags, self: Command) =>
    onCluster(flagsOf<ClusterFlags>(self), async (client, signal) => {
      const { tried, late } = await triedPools(client, names, signal);
      if (late.length > 0) throw new CommandError(late.map(tooLate).join('\n  '));
      for (const { metadata } of tried) {
        await retryOnConflict(() => confirmOne(client, metadata.name, signal));
        print(`pool ${metadata.name}: confirmed`);
      }
    }),
  );
}

/** `shale try cancel`: has the operator roll back now what is being tried. */
export function cancelCommand(): Command {
  const command = new Command('cancel')
    .description('Roll back the pools of a change that is being tried now.')
    .argument('[tried-pool...]', POOLS);
  return withAgreementFlags(withClusterFlags(command)).action(
    (names: readonly string[], _own: ClusterFlags & AgreementFlags, self: Command) => {
      const flags = flagsOf<ClusterFlags & AgreementFlags & Places>(self);
      return onCluster(flags, async (client, signal) => {
        const agree = agreementBy(flags, onTerminal(signal));
        const cancel = async (): Promise<void> => {
          const { tried, late } = await triedPools(client, names, signal);
          for (const name of late) print(tooLate(name));
          if (tried.length === 0) return;
          const agreement = await agree(await planOfRollbacks(client, { tried, places: flags }, signal));
          if (agreement === 'lookAgain') return cancel();
          if (agreement === 'dryRun') return print('no changes were made (dry run)');
          for (const { metadata } of tried) {
            await retryOnConflict(() => cancelOne(client, metadata.name, signal));
            print(`pool ${metadata.name}: the operator rolls it back`);
          }
        };
        await cancel();
      });
    },
  );
}

/** `shale try` has the same flags, and commander gives them to it wherever they stand. */
function flagsOf<Flags extends object>(command: Command): Flags {
  return command.optsWithGlobals<Flags>();
}

async function planOfRollbacks(
  client: ApiClient,
  { tried, places }: { readonly tried: readonly MachineConfigPool[]; readonly places: Places },
  signal: AbortSignal,
): Promise<Plan> {
  const plans: Plan[] = [];
  for (const { metadata, status } of tried) {
    const { config, image } = status?.rollbackDeadline ?? {};
    // What the operator has refused, it rolls back nothing for.
    if (config === undefined) continue;
    const target = { config, image };
    plans.push(await planOfRollback(client, metadata.name, { target, places }, signal));
  }
  return {
    warnings: plans.flatMap(({ warnings }) => warnings),
    lines: plans.flatMap(({ lines }) => lines),
    disrupts: plans.some(({ disrupts }) => disrupts),
  };
}

/** @throws {CommandError} if it is too late. @throws {ApiError} a conflict: the operator may be rolling it back. */
async function confirmOne(client: ApiClient, name: string, signal: AbortSignal): Promise<void> {
  const pool = await client.get(MachineConfigPools, name, { signal });
  if (isTried(pool)) await annotateDeadline(client, pool, null, signal);
  else if (unconfirmedOf(pool) !== undefined) throw new CommandError(tooLate(name));
}

/** Its deadline is now; without one that the operator keeps, there is nothing to roll back to. */
async function cancelOne(client: ApiClient, name: string, signal: AbortSignal): Promise<void> {
  const pool = await client.get(MachineConfigPools, name, { signal });
  const deadline = deadlineOf(pool);
  if (deadline === undefined) return;
  const isKept = deadline !== 'unreadable' && pool.status?.rollbackDeadline?.config !== undefined;
  const ended = isKept ? { ...deadline, until: toSeconds(new Date()) } : null;
  await annotateDeadline(client, pool, ended, signal);
}

function tooLate(pool: string): string {
  return `pool ${pool}: the change was not confirmed in time, and the pool was rolled back; it stays so until its MachineConfigs change`;
}

/** @throws {CommandError} before anything is done, for a name that no pool has. */
async function triedPools(
  client: ApiClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<{
  readonly tried: readonly MachineConfigPool[];
  /** Those that were rolled back already, because nobody confirmed their change. */
  readonly late: readonly string[];
}> {
  const pools = await readAll(client, MachineConfigPools, { signal });
  for (const name of names) poolNamed(pools, name);
  const named = pools.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name));
  const tried = named.filter(isTried);
  const others = names.length > 0 || tried.length === 0 ? named.filter((pool) => !isTried(pool)) : [];
  const [rest, late] = [false, true].map((isLate) =>
    others
      .filter((pool) => (unconfirmedOf(pool) !== undefined) === isLate)
      .map(({ metadata }) => metadata.name),
  ) as [string[], string[]];
  if (names.length > 0) for (const name of rest) print(`pool ${name}: no change is being tried`);
  else if (tried.length + late.length === 0) print('no change is being tried');
  return { tried, late };
}
