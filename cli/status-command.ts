import { Command, Option } from 'commander';
import { toSeconds } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { disputeOn, type ObservedCluster } from '../view/observed-cluster.ts';
import { onCluster, withClusterFlags, withLeaseNamespace } from './command-line/cluster-access.ts';
import { UsageError } from './command-line/exit-codes.ts';
import { createScreen, outputFlag, print } from './command-line/output.ts';
import { printAs } from './command-line/print-as.ts';
import { type WaitFlags, withWaitFlags } from './command-line/quantities.ts';
import { type FleetFlags, failOnUnread, fleetOf, onFleet, withClusters } from './fleet/fleet.ts';
import { type ClusterStatus, FleetStatusOutput, formatFleetStatus } from './fleet/fleet-status.ts';
import { observeCluster, type Places, watchCluster } from './observe/cluster-watch.ts';
import { nodeArrival, poolsArrival } from './observe/pool-arrival.ts';
import { type SelectorFlags, selected, selectsNothing, withSelector } from './observe/selected.ts';
import { changedLines, formatNode, formatStatus, STATUS_TONES } from './observe/status-text.ts';
import { StatusOutput, type StatusView, statusView, viewOfNode, viewOfPool } from './observe/status-view.ts';
import { TAKEN_UP_MS, waitForArrival } from './observe/wait-for-arrival.ts';

interface StatusFlags extends FleetFlags, Places, WaitFlags, SelectorFlags {
  readonly output: string;
  readonly watch?: boolean;
}

const EXAMPLES = `
Examples:
  shale status                    pools, builds, and the nodes that need attention
  shale status worker --watch     one pool with all its nodes, redrawn as it changes
  shale status --wait             wait until every node runs its target; exit code 1 if that fails
  shale status -l zone=a          the nodes with that label, and their pools
  shale status --clusters=DIR     the pools of all clusters that have a kubeconfig in the directory
  shale status node/worker-0      a node, if a pool has the same name`;

/** ms; on a terminal the ages are redrawn every second. */
const REDRAW_MS = 1_000;
/** ms; elsewhere only changes are printed. No watch event reports that a planned maintenance has expired. */
const LOOK_AGAIN_MS = 30_000;

/** `shale status`: the progress of pools, builds and nodes, and what each is waiting for. */
export function statusCommand(): Command {
  const command = new Command('status').argument('[pool|node]', 'show only this pool or node');
  const withFlags = withClusters(
    withSelector(
      withLeaseNamespace(withClusterFlags(command)),
      'show only nodes with these labels, and their pools and builds',
    ),
    'watch',
    'wait',
  )
    .addOption(outputFlag('table', 'wide', 'json', 'yaml'))
    .addOption(
      new Option(
        '-w, --watch',
        'watch for changes: redraw on a terminal, otherwise print a line for each change',
      ).conflicts('wait'),
    );
  return withWaitFlags(withFlags, 'every node runs its target, then print the status')
    .addHelpText('after', EXAMPLES)
    .action((name: string | undefined, flags: StatusFlags) =>
      flags.clusters === undefined
        ? onCluster(flags, (client, signal) =>
            flags.watch === true
              ? follow(client, name, flags, signal)
              : showOnce(client, name, flags, signal),
          )
        : showFleet(name, { ...flags, clusters: flags.clusters }),
    );
}

async function showFleet(
  name: string | undefined,
  flags: StatusFlags & { readonly clusters: string | true },
): Promise<void> {
  const now = Date.now();
  const findings = await onFleet(await fleetOf(flags), flags, (member) => statusOf(name, member, now));
  if (isForPeople(flags)) {
    const columns = process.stdout.isTTY ? process.stdout.columns : undefined;
    print(formatFleetStatus(findings, { wide: flags.output === 'wide', now, columns }), STATUS_TONES);
  } else printAs(flags.output, FleetStatusOutput, findings);
  failOnUnread(findings);
}

/** @throws {CommandError} */
async function statusOf(name: string | undefined, flags: StatusFlags, now: number): Promise<ClusterStatus> {
  const cluster = await onCluster(flags, (client, signal) => observeCluster(client, flags, signal));
  return { status: selectedView(cluster, name, flags, now) };
}

async function showOnce(
  client: ApiClient,
  name: string | undefined,
  flags: StatusFlags,
  signal: AbortSignal,
): Promise<void> {
  if (flags.wait === true && flags.selector !== undefined)
    throw new UsageError("status: --wait can't be combined with --selector: name a pool or a node");
  if (flags.wait === true) await waitUntilUpdated(client, name, flags, signal);
  const now = Date.now();
  const view = selectedView(await observeCluster(client, flags, signal), name, flags, now);
  if (isForPeople(flags)) print(textOf(view, name, flags, now), STATUS_TONES);
  else printAs(flags.output, StatusOutput, view);
}

/** @throws {CommandError} when a pool can't continue, or when the timeout has passed. */
async function waitUntilUpdated(
  client: ApiClient,
  name: string | undefined,
  flags: StatusFlags,
  signal: AbortSignal,
): Promise<void> {
  const look = (cluster: ObservedCluster, now: number) => {
    const { pools, nodes } = chosen(statusView(cluster, now), name, cluster);
    const [node] = nodes;
    if (name !== undefined && pools.length === 0 && node !== undefined)
      return nodeArrival(node.name, cluster, now);
    return poolsArrival(
      pools.map((pool) => pool.name),
      cluster,
      now,
    );
  };
  // A wrong name or a cluster that can't be read at all is reported at once.
  look(await observeCluster(client, flags, signal), Date.now());
  const { timeout } = flags;
  await waitForArrival({ client, places: flags, look, holds: TAKEN_UP_MS, timeout, signal });
}

/** Until Ctrl-C. */
async function follow(
  client: ApiClient,
  name: string | undefined,
  flags: StatusFlags,
  signal: AbortSignal,
): Promise<void> {
  const watch = await watchCluster(client, flags, signal);
  const screen = process.stdout.isTTY && isForPeople(flags) ? createScreen() : undefined;
  let before: StatusView | undefined;
  try {
    for (;;) {
      const now = Date.now();
      const view = selectedView(await watch.observe(), name, flags, now);
      if (screen !== undefined) screen.draw(textOf(view, name, flags, now), STATUS_TONES);
      else if (isForPeople(flags)) printChanges(before, view, now);
      else if (JSON.stringify(before) !== JSON.stringify(view)) printDocument(flags.output, view);
      before = view;
      await watch.changed(screen === undefined ? LOOK_AGAIN_MS : REDRAW_MS);
    }
  } finally {
    await watch.close();
  }
}

/** @throws {CommandError} when no pool or node has the name. */
function selectedView(
  all: ObservedCluster,
  name: string | undefined,
  { selector }: StatusFlags,
  now: number,
): StatusView {
  const cluster = selected(all, selector);
  const view = statusView(cluster, now);
  const remarks = [...view.remarks, ...selectsNothing(cluster, selector)];
  return chosen({ ...view, remarks }, name, cluster);
}

function isForPeople({ output }: StatusFlags): boolean {
  return output === 'table' || output === 'wide';
}

/** @throws {CommandError} when no pool or node has the name. */
function chosen(view: StatusView, given: string | undefined, cluster: ObservedCluster): StatusView {
  if (given === undefined) return view;
  const [, kind, name = given] = /^(pool|node)\/(.*)$/.exec(given) ?? [];
  if (kind !== 'node' && view.pools.some((pool) => pool.name === name)) return viewOfPool(view, name);
  if (kind !== 'pool' && view.nodes.some((node) => node.name === name)) return viewOfNode(view, name);
  const dispute = kind === 'pool' ? undefined : disputeOn(cluster, name);
  if (dispute !== undefined) throw new UsageError(`node ${name}: ${dispute}`);
  const pools = view.pools.map((pool) => pool.name).join(', ');
  throw new UsageError(`no ${kind ?? 'pool or node'} is named ${name}; the pools are: ${pools || 'none'}`);
}

function textOf(view: StatusView, name: string | undefined, { output }: StatusFlags, now: number): string {
  const [node] = view.nodes;
  const columns = process.stdout.isTTY ? process.stdout.columns : undefined;
  if (name !== undefined && view.pools.length === 0 && node !== undefined)
    return formatNode(node, now, columns);
  return formatStatus(view, { wide: output === 'wide', allNodes: name !== undefined, now, columns });
}

function printChanges(before: StatusView | undefined, after: StatusView, now: number): void {
  const time = toSeconds(new Date(now));
  for (const line of changedLines(before, after)) print(`${time} ${line}`);
}

/** One line of JSON or one YAML document for each view, so that a reader can process a stream. */
function printDocument(format: string, view: StatusView): void {
  if (format === 'json') {
    print(JSON.stringify(StatusOutput.parse(view)));
    return;
  }
  print('---');
  printAs(format, StatusOutput, view);
}
