import { Command } from 'commander';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { tryOf } from '../../machineconfig/tried-config.ts';
import { readLiveCluster } from '../change/live-cluster.ts';
import {
  type AgreementFlags,
  agreementBy,
  onTerminal,
  withAgreementFlags,
} from '../command-line/agreement.ts';
import {
  type ClusterFlags,
  onCluster,
  readAll,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { decideEnd } from './decide-try.ts';
import { planOfUndo } from './try-plan.ts';

interface CancelFlags extends ClusterFlags, AgreementFlags {
  readonly leaseNamespace: string;
}

const NAMES = 'MachineConfigs; default: all that are being tried';

/** `shale try confirm`: keeps what is being tried. */
export function confirmCommand(): Command {
  const command = new Command('confirm')
    .description('Keep a change that is being tried.')
    .argument('[tried-config...]', NAMES);
  return withClusterFlags(command).action((names: readonly string[], _own: ClusterFlags, self: Command) =>
    onCluster(flagsOf<ClusterFlags>(self), async (client, signal) => {
      const tried = await triedConfigs(client, names);
      for (const { metadata } of tried) {
        await retryOnConflict(() => annotate(client, metadata.name, () => null, signal));
        print(`MachineConfig ${metadata.name}: confirmed`);
      }
    }),
  );
}

/** `shale try cancel`: has the operator undo now what is being tried. */
export function cancelCommand(): Command {
  const command = new Command('cancel')
    .description('Undo a change that is being tried now.')
    .argument('[tried-config...]', NAMES);
  return withAgreementFlags(withLeaseNamespace(withClusterFlags(command))).action(
    (names: readonly string[], _own: CancelFlags, self: Command) => {
      const flags = flagsOf<CancelFlags>(self);
      return onCluster(flags, async (client, signal) => {
        const agree = agreementBy(flags, onTerminal(signal));
        const cancel = async (): Promise<void> => {
          const tried = await triedConfigs(client, names);
          if (tried.length === 0) return;
          const live = await readLiveCluster(client, flags.leaseNamespace, flags.namespace);
          const agreement = await agree(planOfUndo(live, tried));
          if (agreement === 'lookAgain') return cancel();
          if (agreement === 'dryRun') return print('no changes were made (dry run)');
          for (const { metadata } of tried) {
            await retryOnConflict(() => annotate(client, metadata.name, endedNow, signal));
            print(`MachineConfig ${metadata.name}: the operator undoes the change`);
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

/** @throws CommandError before anything is done, for a name that no MachineConfig has. */
async function triedConfigs(client: ApiClient, names: readonly string[]): Promise<readonly MachineConfig[]> {
  const { tried, others, missing } = decideEnd(await readAll(client, MachineConfigs), names);
  if (missing.length > 0) {
    throw new CommandError(
      `no MachineConfig is named ${missing.join(' or ')}; one that a try created is gone once the try is undone`,
      exitCodes.usage,
    );
  }
  for (const name of others) print(`MachineConfig ${name}: it is not being tried`);
  if (tried.length === 0 && others.length === 0) print('no change is being tried');
  return tried;
}

/** @returns the annotation of a try that is over. @throws Error if it can't be read. */
function endedNow(config: MachineConfig): string | null {
  const request = tryOf(config);
  const until = toSeconds(new Date());
  return request === undefined ? null : JSON.stringify({ ...request, until });
}

/** @throws {ApiError} a conflict when the MachineConfig has changed since it was read. */
async function annotate(
  client: ApiClient,
  name: string,
  textOf: (config: MachineConfig) => string | null,
  signal: AbortSignal,
): Promise<void> {
  const config = await client.find(MachineConfigs, name, { signal });
  if (config?.metadata.annotations?.[annotations.try] === undefined) return;
  const { resourceVersion } = config.metadata;
  const body = { metadata: { resourceVersion, annotations: { [annotations.try]: textOf(config) } } };
  await client.patch(MachineConfigs, name, { type: 'merge', body }, { signal });
}
