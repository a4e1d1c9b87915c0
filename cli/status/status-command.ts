import { Command } from 'commander';
import type { ApiClient } from '../../cluster/api-client.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { type ClusterFlags, withClusterFlags, withLeaseNamespace } from '../live-objects.ts';
import { observeCluster, watchCluster } from '../observe/cluster-watch.ts';
import { onCluster } from '../on-cluster.ts';
import { StatusOutput } from '../output-schemas.ts';
import { outputFlag, print, printAs } from '../print.ts';
import { createScreen } from './screen.ts';
import { formatNode, formatStatus, linesByName } from './status-text.ts';
import { type StatusView, statusView, viewOfNode, viewOfPool } from './status-view.ts';

interface StatusFlags extends ClusterFlags {
  readonly leaseNamespace: string;
  readonly output: string;
  readonly watch?: boolean;
}

const EXAMPLES = `
Examples:
  shale status                    pools, builds, and the nodes that have something to do
  shale status worker --watch     one pool with all its nodes, as it changes
  shale status node/worker-0      one node, where a pool has the same name`;

/** ms; on a terminal the times since count on. */
const REDRAW_MS = 1_000;
/** ms; anywhere else only changes are told. A planned maintenance that ends by itself makes no event. */
const LOOK_AGAIN_MS = 30_000;

/** `shale status`: how far pools, builds and nodes are, and what they wait for. */
export function statusCommand(): Command {
  const command = new Command('status').argument('[pool|node]', 'one pool or node alone');
  return withLeaseNamespace(withClusterFlags(command))
    .addOption(outputFlag('table', 'wide', 'json', 'yaml'))
    .option('-w, --watch', 'go on: redraw on a terminal, else print a line for each change')
    .addHelpText('after', EXAMPLES)
    .action((name: string | undefined, flags: StatusFlags) =>
      onCluster(flags, (client, signal) =>
        flags.watch === true ? follow(client, name, flags, signal) : showOnce(client, name, flags, signal),
      ),
    );
}

async function showOnce(
  client: ApiClient,
  name: string | undefined,
  flags: StatusFlags,
  signal: AbortSignal,
): Promise<void> {
  const now = Date.now();
  const view = chosen(statusView(await observeCluster(client, flags, signal), now), name);
  if (isForPeople(flags)) print(textOf(view, name, flags, now));
  else printAs(flags.output, StatusOutput, view);
}

/** Until Ctrl-C. */
async function follow(
  client: ApiClient,
  name: string | undefined,
  flags: StatusFlags,
  signal: AbortSignal,
): Promise<void> {
  const watch = await watchCluster(client, flags, signal);
  const screen = process.stdout.isTTY && isForPeople(flags) ? createScreen(process.stdout) : undefined;
  let before: StatusView | undefined;
  try {
    for (;;) {
      const now = Date.now();
      const view = chosen(statusView(await watch.observe(), now), name);
      if (screen !== undefined) screen.draw(textOf(view, name, flags, now));
      else if (isForPeople(flags)) printChanges(before, view, now);
      else if (JSON.stringify(before) !== JSON.stringify(view)) printDocument(flags.output, view);
      before = view;
      await watch.changed(screen === undefined ? LOOK_AGAIN_MS : REDRAW_MS);
    }
  } finally {
    await watch.close();
  }
}

function isForPeople({ output }: StatusFlags): boolean {
  return output === 'table' || output === 'wide';
}

/** @throws CommandError for a name that no pool and no node has. */
function chosen(view: StatusView, given: string | undefined): StatusView {
  if (given === undefined) return view;
  const [, kind, name = given] = /^(pool|node)\/(.*)$/.exec(given) ?? [];
  if (kind !== 'node' && view.pools.some((pool) => pool.name === name)) return viewOfPool(view, name);
  if (kind !== 'pool' && view.nodes.some((node) => node.name === name)) return viewOfNode(view, name);
  const pools = view.pools.map((pool) => pool.name).join(', ');
  throw new CommandError(
    `no ${kind ?? 'pool and no node'} ${name}; the pools are: ${pools || 'none'}`,
    exitCodes.usage,
  );
}

function textOf(view: StatusView, name: string | undefined, { output }: StatusFlags, now: number): string {
  const [node] = view.nodes;
  if (name !== undefined && view.pools.length === 0 && node !== undefined) return formatNode(node, now);
  return formatStatus(view, { wide: output === 'wide', allNodes: name !== undefined, now });
}

function printChanges(before: StatusView | undefined, after: StatusView, now: number): void {
  const old = before === undefined ? new Map<string, string>() : linesByName(before);
  const lines = linesByName(after);
  const gone = [...old.keys()].filter((subject) => !lines.has(subject)).map((subject) => `${subject}: gone`);
  const changed = [...lines].filter(([subject, line]) => old.get(subject) !== line).map(([, line]) => line);
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
  for (const line of [...changed, ...gone]) print(`${time} ${line}`);
}

/** JSON by the line and YAML by the document, so that each can be read as it comes. */
function printDocument(format: string, view: StatusView): void {
  if (format === 'json') {
    print(JSON.stringify(StatusOutput.parse(view)));
    return;
  }
  print('---');
  printAs(format, StatusOutput, view);
}
