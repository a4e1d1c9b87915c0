import { Command } from 'commander';
import { formatRetryRequest } from '../api/annotation-requests.ts';
import { type MachineConfigNode, MachineConfigNodes, type UpdateRecord } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';
import { toSeconds } from '../api/object.ts';
import { byCodeUnits } from '../api/order.ts';
import { inOneLine } from '../api/visible-text.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { conditionIsTrue, retryOnConflict } from '../cluster/update-object.ts';
import { type Retriable, retriableOn } from '../view/retriable.ts';
import {
  type ClusterFlags,
  onCluster,
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from './command-line/cluster-access.ts';
import { CommandError, poolNamed, UsageError } from './command-line/exit-codes.ts';
import { print } from './command-line/output.ts';
import { type WaitFlags, withWaitFlags } from './command-line/quantities.ts';
import { annotate, managedNode } from './node-request.ts';
import type { Places } from './observe/cluster-watch.ts';
import { type RetriedNode, retriesArrival } from './observe/retry-arrival.ts';
import { TAKEN_UP_MS, waitIfAsked } from './observe/wait-for-arrival.ts';

interface RetryFlags extends ClusterFlags, Places, WaitFlags {
  readonly pool?: string;
}

const EXAMPLES = `
Examples:
  shale retry worker-0 --wait    have it take its target again, and wait until it runs it
  shale retry --pool worker      the same for every node of the pool whose update failed`;

/** `shale retry`: has nodes take a target again at which they failed, after somebody fixed why. */
export function retryCommand(): Command {
  const command = new Command('retry')
    .argument('[node]')
    .option('--pool <name>', 'every node of this pool whose update failed');
  return withWaitFlags(withLeaseNamespace(withClusterFlags(command)), 'the nodes run their target')
    .addHelpText('after', EXAMPLES)
    .action((node: string | undefined, flags: RetryFlags) =>
      onCluster(flags, (client, signal) => retry(client, node, flags, signal)),
    );
}

async function retry(
  client: ApiClient,
  node: string | undefined,
  flags: RetryFlags,
  signal: AbortSignal,
): Promise<void> {
  const retried: RetriedNode[] = [];
  const lines: string[] = [];
  for (const name of await namesOf(client, node, flags.pool, signal)) {
    const retriable = await requestOn(client, name, signal);
    lines.push(formatRetry(name, retriable));
    if (retriable.kind === 'failed') retried.push({ name, failedAt: retriable.update.finishedAt });
  }
  if (retried.length === 0)
    throw new CommandError(lines.join('\n') || `pool ${flags.pool}: no update of its nodes failed`);
  print(lines.join('\n'));
  await waitIfAsked(flags, {
    client,
    look: (cluster, now) => retriesArrival(retried, cluster, now),
    holds: TAKEN_UP_MS,
    afterInterrupt: 'the nodes still take their target again',
    signal,
  });
}

/** @throws {CommandError} unless either a node or a pool is named, and when that pool doesn't exist. */
async function namesOf(
  client: ApiClient,
  node: string | undefined,
  pool: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (node !== undefined && pool === undefined) return [node];
  if (node !== undefined || pool === undefined) throw new UsageError('expected either a node or --pool');
  const { items: pools } = await client.list(MachineConfigPools, { signal });
  poolNamed(pools, pool);
  const { items: nodes } = await client.list(MachineConfigNodes, { signal });
  return nodes
    .filter((each) => each.spec.pool.name === pool && isProblem(each))
    .map(({ metadata }) => metadata.name)
    .toSorted(byCodeUnits);
}

function isProblem(node: MachineConfigNode): boolean {
  return retriableOn(node).kind === 'failed' || conditionIsTrue(node.status?.conditions, 'NodeDegraded');
}

/** Requests a retry where there is something to retry. @returns what it is. */
function requestOn(client: ApiClient, name: string, signal: AbortSignal): Promise<Retriable> {
  return retryOnConflict(async () => {
    const node = await managedNode(client, name, signal);
    const retriable = retriableOn(node);
    if (retriable.kind === 'failed' && !retriable.isRequested)
      await request(client, node, retriable.update, signal);
    return retriable;
  });
}

/** @throws {ApiError} see annotate: the target may be another one now. */
async function request(
  client: ApiClient,
  node: MachineConfigNode,
  { config, image, finishedAt: failedAt }: UpdateRecord,
  signal: AbortSignal,
): Promise<void> {
  const at = toSeconds(new Date());
  const by = await whoAmI(client, signal);
  const text = formatRetryRequest({ config, image, failedAt, by, at });
  await annotate(client, MachineConfigNodes, node, { [annotations.retry]: text }, signal);
}

/** @returns what the command does on a node, in words. */
export function formatRetry(node: string, retriable: Retriable): string {
  switch (retriable.kind) {
    case 'none':
      return `node ${node}: nothing to retry: ${retriable.why}`;
    case 'failed': {
      const { update, isRequested } = retriable;
      const { config, message = 'no reason is reported' } = update;
      return isRequested
        ? `node ${node}: a retry of the update to ${config} is requested already`
        : `node ${node}: requested a retry of the update to ${config}, which failed: ${inOneLine(message)}`;
    }
  }
}
