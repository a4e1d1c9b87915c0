import { Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { annotations } from '../../api/names.ts';
import { flagOn } from '../../api/node-flag.ts';
import { by } from '../../api/order.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { obstacleOf } from '../../view/obstacles.ts';
import { reportWarnings } from '../change/report-warnings.ts';
import {
  type ClusterFlags,
  onCluster,
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { asGiven } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS, textTable } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import { timeoutFlag } from '../command-line/quantities.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import { type SelectorFlags, selected, selectsNothing, withSelector } from '../observe/selected.ts';
import { endMaintenance } from './end.ts';
import { flagOf, parseUntil } from './node-access.ts';
import { type StartFlags, startMaintenance } from './start.ts';

type MaintenanceFlags = ClusterFlags & Places;

const EXAMPLES = `
Examples:
  shale maintenance start worker-0 --reason 'new disk' --until 2h
  shale maintenance start worker-0 --reason 'new disk' --wait   after its current update has finished
  shale maintenance start worker-0 --reason 'new disk' --power-off
  shale maintenance end worker-0                                restore its previous state`;

/**
 * `shale maintenance`: takes a node out of service and holds its lease, which rollouts and the medik8s operators
 * respect.
 */
export function maintenanceCommand(): Command {
  return new Command('maintenance')
    .addCommand(startCommand())
    .addCommand(endCommand())
    .addCommand(listCommand())
    .addHelpText('after', EXAMPLES);
}

function startCommand(): Command {
  const command = new Command('start')
    .description('Flag a node, acquire its lease, cordon it and drain it, as soon as that is safe.')
    .argument('<node>')
    .requiredOption('--reason <text>', 'reason, shown with the node')
    .option(
      '--until <when>',
      'end of the maintenance: a duration such as 4h or a time (RFC 3339); the lease is held until then',
      '4h',
    )
    .option('--yes', 'continue even if a rollout is in progress; the rollout skips the node')
    .option(
      '--wait',
      "wait until the node's update has finished; with --yes, only for an update that has started",
    )
    .option('--no-drain', 'do not drain the node')
    .option('--power-off', 'power the machine off once it is drained, and wait until it is off')
    .option('--force', 'also evict pods that no controller manages')
    .addOption(timeoutFlag('30m'));
  return withMaintenanceFlags(command).action(
    (node: string, flags: MaintenanceFlags & StartFlags & { readonly until: string }) =>
      onCluster(flags, async (client, signal) => {
        const until = untilOf(flags.until);
        const by = await whoAmI(client, signal);
        const access = { client, node, leaseNamespace: flags.leaseNamespace, signal };
        await startMaintenance(access, { ...flags, by, until });
      }),
  );
}

function endCommand(): Command {
  const command = new Command('end')
    .description('Restore a node to its state before the maintenance.')
    .argument('<node>')
    .option('--yes', 'end a maintenance that somebody else started, or of a machine that is still off');
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
    .description('List the nodes that rollouts skip, and why.')
    .addOption(outputFlag(...TABLE_FORMATS));
  const withFlags = withSelector(withMaintenanceFlags(command), 'list only nodes with these labels');
  return withFlags.action((flags: MaintenanceFlags & SelectorFlags & { output: string }) =>
    onCluster(flags, async (client, signal) => {
      const cluster = selected(await observeCluster(client, flags, signal), flags.selector);
      reportWarnings(selectsNothing(cluster, flags.selector));
      const entries = maintenanceList(cluster, Date.now());
      if (flags.output === 'table') print(formatMaintenance(entries));
      else printAs(flags.output, MaintenanceOutput, entries);
    }),
  );
}

function withMaintenanceFlags(command: Command): Command {
  return withLeaseNamespace(withClusterFlags(command));
}

function untilOf(text: string): number {
  return asGiven(
    () => parseUntil(text, Date.now()),
    (error) =>
      error instanceof InvalidArgumentError
        ? `option '--until <when>' argument '${text}' is invalid. ${error.message}`
        : undefined,
  );
}

/** The nodes that are in maintenance or flagged for it, as `list -o json` prints them. */
export const MaintenanceOutput = z.array(
  z.strictObject({
    node: z.string(),
    by: z.string().optional(),
    reason: z.string().optional(),
    /** RFC 3339; absent: until the maintenance is ended. */
    until: z.string().optional(),
    /** Why a rollout skips the node now; absent once the maintenance has expired. */
    obstacle: z.string().optional(),
    cordoned: z.boolean(),
  }),
);
type MaintenanceEntry = z.infer<typeof MaintenanceOutput>[number];

/**
 * @returns every node that is flagged, has a lease of another holder than the operator, or is skipped for another
 * reason.
 */
export function maintenanceList(cluster: ObservedCluster, now: number): readonly MaintenanceEntry[] {
  return cluster.nodes.toSorted(by(({ metadata }) => metadata.name)).flatMap((node) => {
    const flag = flagOf(node) ?? flagOn(node, annotations.poweredOff)?.flag;
    const obstacle = obstacleOf(cluster, node.metadata.name, now);
    if (flag === undefined && obstacle === undefined) return [];
    return [
      {
        node: node.metadata.name,
        by: flag?.by || undefined,
        reason: flag?.reason || undefined,
        until: flag?.until || undefined,
        obstacle,
        cordoned: node.spec?.unschedulable === true,
      },
    ];
  });
}

export function formatMaintenance(entries: readonly MaintenanceEntry[]): string {
  if (entries.length === 0) return 'no node is in maintenance';
  return textTable(
    ['NODE', 'BY', 'REASON', 'UNTIL', 'CORDONED', 'SKIPPED'],
    entries.map(({ node, by, reason, until, obstacle, cordoned }) => [
      node,
      by ?? '-',
      reason ?? '-',
      until ?? '-',
      cordoned ? 'yes' : 'no',
      obstacle ?? 'no: the maintenance has expired',
    ]),
  ).join('\n');
}
