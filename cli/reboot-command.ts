import { Command } from 'commander';
import { formatRebootRequest } from '../api/annotation-requests.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { toSeconds } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { retryOnConflict } from '../cluster/update-object.ts';
import { reportWarnings } from './change/report-warnings.ts';
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
import { annotate, managedNode } from './node-request.ts';
import { observeCluster, type Places } from './observe/cluster-watch.ts';
import { allArrivals } from './observe/pool-arrival.ts';
import { type RebootedNode, rebootArrival } from './observe/reboot-arrival.ts';
import { TAKEN_UP_MS, waitIfAsked } from './observe/wait-for-arrival.ts';
import { rolloutRemarks } from './plan/rollout-remarks.ts';

interface RebootFlags extends ClusterFlags, Places, WaitFlags {
  readonly reason: string;
}

const EXAMPLES = `
Examples:
  shale reboot worker-0 --wait                        reboot it, and wait until it is healthy again
  shale reboot worker-0 worker-1 --reason 'new BIOS'  both, as many at a time as the pool allows`;

/** `shale reboot`: has nodes reboot as by an update to what they run. */
export function rebootNodesCommand(): Command {
  const command = new Command('reboot')
    .argument('<node...>')
    .option('--reason <text>', 'reason, shown with the node and in its events', '');
  return withWaitFlags(
    withLeaseNamespace(withClusterFlags(command)),
    'the nodes have rebooted and are healthy',
  )
    .addHelpText('after', EXAMPLES)
    .action((nodes: readonly string[], flags: RebootFlags) =>
      onCluster(flags, (client, signal) => reboot(client, nodes, flags, signal)),
    );
}

async function reboot(
  client: ApiClient,
  nodes: readonly string[],
  flags: RebootFlags,
  signal: AbortSignal,
): Promise<void> {
  const by = await whoAmI(client, signal);
  const rebooted: RebootedNode[] = [];
  for (const name of nodes)
    rebooted.push(await requestOn(client, name, { by, reason: flags.reason }, signal));
  print(nodes.map((name) => `node ${name}: requested a reboot`).join('\n'));
  await warn(client, nodes, flags, signal);
  await waitIfAsked(flags, {
    client,
    look: (cluster, now) => allArrivals(rebooted.map((node) => rebootArrival(node, cluster, now))),
    holds: TAKEN_UP_MS,
    afterInterrupt: 'the nodes still reboot',
    signal,
  });
}

/** Says what a reboot waits for, as plan does of an update. */
async function warn(
  client: ApiClient,
  nodes: readonly string[],
  flags: RebootFlags,
  signal: AbortSignal,
): Promise<void> {
  const cluster = await observeCluster(client, flags, signal);
  const pools = new Set(
    cluster.machineConfigNodes
      .filter(({ metadata }) => nodes.includes(metadata.name))
      .map(({ spec }) => spec.pool.name),
  );
  reportWarnings(rolloutRemarks([...pools], cluster.pools, cluster, Date.now(), true));
}

/** @throws {CommandError} when no pool selects the node, and when its daemon has never reported. */
function requestOn(
  client: ApiClient,
  name: string,
  { by, reason }: { readonly by: string; readonly reason: string },
  signal: AbortSignal,
): Promise<RebootedNode> {
  return retryOnConflict(async () => {
    const node = await managedNode(client, name, signal);
    const bootID = node.status?.bootID;
    if (bootID === undefined) throw new CommandError(`node ${name}: its daemon has not reported yet`);
    const text = formatRebootRequest({ bootID, by, reason, at: toSeconds(new Date()) });
    await annotate(client, MachineConfigNodes, node, { [annotations.reboot]: text }, signal);
    return { name, bootID };
  });
}
