import { Command, InvalidArgumentError } from 'commander';
import { timeoutFlag } from '../duration.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { type ClusterFlags, withClusterFlags, withLeaseNamespace } from '../live-objects.ts';
import { observeCluster } from '../observe/cluster-watch.ts';
import { onCluster } from '../on-cluster.ts';
import { MaintenanceOutput } from '../output-schemas.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from '../print.ts';
import { whoAmI } from '../who-am-i.ts';
import { endMaintenance } from './end.ts';
import { parseUntil } from './flag.ts';
import { formatMaintenance, maintenanceList } from './list.ts';
import { startMaintenance } from './start.ts';

interface MaintenanceFlags extends ClusterFlags {
  readonly leaseNamespace: string;
}

interface StartFlags extends MaintenanceFlags {
  readonly reason: string;
  readonly until: string;
  readonly yes?: boolean;
  readonly wait?: boolean;
  readonly drain: boolean;
  readonly force?: boolean;
  readonly timeout: number;
}

const EXAMPLES = `
Examples:
  shale maintenance start worker-0 --reason 'new disk' --until 2h
  shale maintenance start worker-0 --reason 'new disk' --wait   once its update under way has ended
  shale maintenance end worker-0                                as it was before`;

/** `shale maintenance`: a person's exclusive right to a node, which rollouts and the medik8s operators respect. */
export function maintenanceCommand(): Command {
  return new Command('maintenance')
    .addCommand(startCommand())
    .addCommand(endCommand())
    .addCommand(listCommand())
    .addHelpText('after', EXAMPLES);
}

function startCommand(): Command {
  const command = new Command('start')
    .description('Flag a node, take its lease, cordon and drain it; once it is safe to.')
    .argument('<node>')
    .requiredOption('--reason <text>', 'why, for whoever finds the node so')
    .option('--until <when>', 'a span such as 4h or a time (RFC 3339); the lease is taken for as long', '4h')
    .option('--yes', 'go on though a rollout is in progress, which passes the node by then')
    .option('--wait', "wait for the node's update to end; with --yes: only for what has begun on it")
    .option('--no-drain', 'leave the pods where they are')
    .option('--force', 'evict pods too that no controller makes anew')
    .addOption(timeoutFlag('30m'));
  return withMaintenanceFlags(command).action((node: string, flags: StartFlags) =>
    onCluster(flags, async (client, signal) => {
      const until = untilOf(flags.until);
      const by = await whoAmI(client, signal);
      const { leaseNamespace, reason, drain, timeout, yes = false, wait = false, force = false } = flags;
      await startMaintenance(
        { client, node, leaseNamespace, signal },
        { by, reason, until, yes, wait, drain, force, timeout },
      );
    }),
  );
}

function endCommand(): Command {
  const command = new Command('end')
    .description('Put a node back as it was before its maintenance.')
    .argument('<node>')
    .option('--yes', "end somebody else's");
  return withMaintenanceFlags(command).action((node: string, flags: MaintenanceFlags & { yes?: boolean }) =>
    onCluster(flags, async (client, signal) => {
      const by = await whoAmI(client, signal);
      const { leaseNamespace, yes = false } = flags;
      await endMaintenance({ client, node, leaseNamespace, signal }, { by, yes });
    }),
  );
}

function listCommand(): Command {
  const command = new Command('list')
    .description('List the nodes that rollouts leave alone, and why.')
    .addOption(outputFlag(...TABLE_FORMATS));
  return withMaintenanceFlags(command).action((flags: MaintenanceFlags & { output: string }) =>
    onCluster(flags, async (client, signal) => {
      const entries = maintenanceList(await observeCluster(client, flags, signal), Date.now());
      if (flags.output === 'table') print(formatMaintenance(entries));
      else printAs(flags.output, MaintenanceOutput, entries);
    }),
  );
}

function withMaintenanceFlags(command: Command): Command {
  return withLeaseNamespace(withClusterFlags(command));
}

function untilOf(text: string): number {
  try {
    return parseUntil(text, Date.now());
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new CommandError(`--until ${text}: expected ${error.message}`, exitCodes.usage, { cause: error });
  }
}
