import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { formatRepairRequest, type RepairRequest } from '../api/annotation-requests.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { toSeconds } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { retryOnConflict } from '../cluster/update-object.ts';
import {
  type ClusterFlags,
  onCluster,
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from './command-line/cluster-access.ts';
import { CommandError } from './command-line/exit-codes.ts';
import { print } from './command-line/output.ts';
import { type WaitFlags, withWaitFlags } from './command-line/quantities.ts';
import { observeHolders } from './maintenance/holders.ts';
import { annotate, managedNode } from './node-request.ts';
import type { Places } from './observe/cluster-watch.ts';
import { type ReportedDrift, repairArrival, reportedDrift } from './observe/repair-arrival.ts';
import { TAKEN_UP_MS, waitIfAsked } from './observe/wait-for-arrival.ts';

interface RepairFlags extends ClusterFlags, Places, WaitFlags {
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

const EXAMPLES = `
Examples:
  shale repair worker-0 --dry-run   show what differs from its config
  shale repair worker-0 --wait      overwrite it, and wait until nothing differs
  shale repair worker-0 --force     overwrite it although somebody else holds the node`;

/** `shale repair`: has a node's daemon restore, once, what was changed by hand. */
export function repairCommand(): Command {
  const command = new Command('repair')
    .argument('<node>')
    .option('--dry-run', 'only show what would be overwritten')
    .option('--force', 'overwrite it even if somebody else holds the node: a lease, a maintenance, a cordon');
  return withWaitFlags(withLeaseNamespace(withClusterFlags(command)), 'nothing differs any more')
    .addHelpText('after', EXAMPLES)
    .action((node: string, flags: RepairFlags) =>
      onCluster(flags, (client, signal) => repair(client, node, flags, signal)),
    );
}

async function repair(
  client: ApiClient,
  name: string,
  flags: RepairFlags,
  signal: AbortSignal,
): Promise<void> {
  const { force = false, dryRun: isDryRun = false, leaseNamespace } = flags;
  const by = await whoAmI(client, signal);
  const { drift, reasons } = await retryOnConflict(async () => {
    const node = await managedNode(client, name, signal);
    const reported = reportedDrift(node);
    if (!isRepairable(reported)) return { drift: reported, reasons: [] };
    const access = { client, node: name, leaseNamespace, signal };
    const { reasons, leaseHolder } = await observeHolders(access, by);
    if (!isDryRun) {
      if (reasons.length > 0 && !force) throw new CommandError(formatRefusal(name, reasons));
      await request(client, node, { by, leaseHolder }, signal);
    }
    return { drift: reported, reasons };
  });
  const extent = isDryRun ? 'planned' : 'requested';
  print(formatRepair(name, drift, extent));
  if (reasons.length > 0) print(formatHeld(reasons, extent));
  if (!isRepairable(drift)) return;
  await waitIfAsked(flags, {
    client,
    look: (cluster) => repairArrival(name, cluster),
    holds: TAKEN_UP_MS,
    afterInterrupt: `the daemon of node ${name} still carries out the repair`,
    signal,
  });
}

/** What the daemon has not compared may differ. */
function isRepairable({ kind }: ReportedDrift): boolean {
  return kind === 'differs' || kind === 'unknown';
}

/** @throws {ApiError} see annotate: something else may differ now. */
async function request(
  client: ApiClient,
  node: MachineConfigNode,
  user: Pick<RepairRequest, 'by' | 'leaseHolder'>,
  signal: AbortSignal,
): Promise<void> {
  const text = formatRepairRequest({ id: randomUUID(), ...user, at: toSeconds(new Date()) });
  await annotate(client, MachineConfigNodes, node, { [annotations.repair]: text }, signal);
}

/** What a command has done with a repair: with `--dry-run` it is only planned. */
type Extent = 'planned' | 'requested';

/** @returns what the command does, in words. */
export function formatRepair(node: string, drift: ReportedDrift, extent: Extent): string {
  switch (drift.kind) {
    case 'none':
      return `node ${node}: nothing differs from its config`;
    case 'elsewhere':
      return `node ${node}: nothing differs that a repair overwrites: ${drift.message}`;
    case 'unknown':
      return extent === 'planned'
        ? `node ${node}: its daemon reports no change made by hand, but the node does not run its target: what differs is not known`
        : `node ${node}: requested a repair. Its daemon reports no change made by hand, but the node does not run its target: it overwrites what differs, if anything does`;
    case 'differs':
      return [
        `node ${node}: ${extent === 'planned' ? 'would overwrite' : 'requested a repair, which overwrites'} what was changed by hand: ${drift.what}`,
        '  services that read these files are not restarted',
      ].join('\n');
  }
}

/** @returns why nothing is requested. @param reasons why somebody else holds the node, at least one. */
function formatRefusal(node: string, reasons: readonly string[]): string {
  return `node ${node}: not repaired, because somebody else holds it: ${reasons.join('; ')}. Run this again once the node is released, or use --force to overwrite what differs all the same`;
}

function formatHeld(reasons: readonly string[], extent: Extent): string {
  return `  somebody else holds the node, which ${extent === 'planned' ? 'only --force' : '--force'} overrides: ${reasons.join('; ')}`;
}
