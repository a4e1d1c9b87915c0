import { randomUUID } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { formatDuration } from '../../api/duration.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type KubernetesObject, toSeconds } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { LONGEST_DEADLINE } from '../../rollout/pools/rollback-deadline.ts';
import { readLiveCluster } from '../change/live-cluster.ts';
import { readObjects } from '../change/object-files.ts';
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
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, UsageError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { parseDurationFlag } from '../command-line/quantities.ts';
import type { Places } from '../observe/cluster-watch.ts';
import { decideTry, type Try } from './decide-try.ts';
import { cancelCommand, confirmCommand } from './end-commands.ts';
import { applyUnderDeadline, awaitConfirmation } from './run-try.ts';
import { planOfChanges } from './try-plan.ts';

interface StartFlags extends ClusterFlags, Places, AgreementFlags {
  readonly filename: readonly string[];
  /** ms */
  readonly for: number;
  readonly reason: string;
  readonly wait: boolean;
}

/** ms; less is no time to look. */
const SHORTEST = 60_000;

const EXAMPLES = `
Ctrl-C undoes the change, and so does the command if nobody confirms it in time. Without the command, its pools are rolled back
then and held until their MachineConfigs change.

Examples:
  shale try -f sysctl.yaml --for 10m   apply it, and undo it in 10 minutes
  shale try confirm                    keep it, from another terminal
  shale try cancel                     roll its pools back now`;

/** `shale try`: applies MachineConfigs whose pools the operator rolls back unless somebody confirms the change. */
export function tryCommand(): Command {
  const command = new Command('try')
    .option(
      '-f, --filename <file...>',
      'files or directories with MachineConfigs, or - for standard input',
      [],
    )
    .addOption(
      new Option('--for <duration>', 'time after which the pools are rolled back')
        .argParser(tryTime)
        .default(600_000, '10m'),
    )
    .option('--reason <text>', 'reason, shown with the pools', '')
    .option(
      '--no-wait',
      'end once the change is applied: its MachineConfigs are not restored, pools are rolled back',
    );
  return withAgreementFlags(withLeaseNamespace(withClusterFlags(command)))
    .addHelpText('after', EXAMPLES)
    .action((flags: StartFlags) => onCluster(flags, (client, signal) => start(client, flags, signal)))
    .addCommand(confirmCommand())
    .addCommand(cancelCommand());
}

/** @throws InvalidArgumentError that says what would be right. */
function tryTime(text: string): number {
  const time = parseDurationFlag(text);
  if (time >= SHORTEST && time <= LONGEST_DEADLINE) return time;
  throw new InvalidArgumentError('Expected a duration of one minute to seven days');
}

async function start(client: ApiClient, flags: StartFlags, signal: AbortSignal): Promise<void> {
  const wanted = await machineConfigsIn(flags.filename);
  const agree = agreementBy(flags, onTerminal(signal));
  const decide = async (): Promise<Try | 'dryRun'> => {
    const configs = await readAll(client, MachineConfigs, { signal });
    const decided = decideTry(wanted, configs, await readAll(client, MachineConfigPools, { signal }));
    if (typeof decided === 'string') throw new CommandError(decided);
    if (decided.changes.length === 0) return decided;
    const live = await readLiveCluster(client, flags.leaseNamespace, flags.namespace);
    const agreement = await agree(
      await planOfChanges(live, decided.changes, { client, namespace: flags.namespace }, signal),
    );
    return agreement === 'lookAgain' ? decide() : agreement === 'dryRun' ? 'dryRun' : decided;
  };
  const decided = await decide();
  if (decided === 'dryRun') return print('no changes were made (dry run)');
  for (const name of decided.unchanged) print(`MachineConfig ${name}: unchanged`);
  if (decided.changes.length === 0) return;
  const now = Date.now();
  const until = toSeconds(new Date(now + flags.for));
  const by = await whoAmI(client, signal);
  const deadline = { id: randomUUID(), until, by, reason: flags.reason, at: toSeconds(new Date(now)) };
  const names = decided.pools.map(({ metadata }) => metadata.name);
  const run = { client, places: flags, names, deadline, signal, changes: decided.changes };
  const written = await applyUnderDeadline(run);
  for (const name of names)
    print(
      `pool ${name}: rolled back in ${formatDuration(flags.for)} unless you run: shale try confirm ${name}`,
    );
  if (flags.wait) await awaitConfirmation(run, written);
}

async function machineConfigsIn(files: readonly string[]): Promise<readonly MachineConfig[]> {
  if (files.length === 0) throw new UsageError('try: specify the change with -f');
  const objects = await readObjects(files);
  const other = objects.find((object) => !isMachineConfig(object));
  if (other !== undefined)
    throw new UsageError(`${other.kind} ${other.metadata.name}: only MachineConfigs can be tried`);
  return objects.filter(isMachineConfig);
}

function isMachineConfig(object: KubernetesObject): object is MachineConfig {
  return (
    object.kind === MachineConfigs.kind && (object.apiVersion ?? '').startsWith(`${MachineConfigs.group}/`)
  );
}
