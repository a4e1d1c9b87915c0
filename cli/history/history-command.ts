import { Command } from 'commander';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { plural } from '../../api/plural.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { objectNamed } from '../../view/named.ts';
import {
  type ClusterFlags,
  onCluster,
  readAll,
  unlessForbidden,
  withClusterFlags,
} from '../command-line/cluster-access.ts';
import { poolNamed } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import { type HistoryEntry, type HistoryInput, HistoryOutput, poolHistory } from './pool-history.ts';

/** `shale history`: the images and rendered configs that a pool was assigned. */
export function historyCommand(): Command {
  const command = new Command('history').argument('<pool>');
  return withClusterFlags(command)
    .addOption(outputFlag(...TABLE_FORMATS))
    .action((pool: string, flags: ClusterFlags & { output: string }) =>
      onCluster(flags, async (client, signal) => {
        const entries = poolHistory(await readHistory(client, pool, signal));
        if (flags.output === 'table') print(formatHistory(entries));
        else printAs(flags.output, HistoryOutput, entries);
      }),
    );
}

/** Reads the objects for a pool's history. @throws {CommandError} when nothing is known of such a pool. */
export async function readHistory(
  client: ApiClient,
  name: string,
  signal: AbortSignal,
): Promise<HistoryInput> {
  const [pools, machineConfigs, builds, machineConfigNodes, poolRevisions] = await Promise.all([
    readAll(client, MachineConfigPools, { signal }),
    readAll(client, MachineConfigs, { signal }),
    readAll(client, MachineOSBuilds, { signal }),
    readAll(client, MachineConfigNodes, { signal }),
    unlessForbidden(readAll(client, PoolRevisions, { signal })),
  ]);
  const isRecorded = poolRevisions?.some(({ spec }) => spec.machineConfigPool.name === name) === true;
  const pool = isRecorded ? objectNamed(pools, name) : poolNamed(pools, name);
  return { name, pool, machineConfigs, builds, machineConfigNodes, poolRevisions };
}

export function formatHistory(entries: readonly HistoryEntry[]): string {
  if (entries.length === 0) return 'no config has been rendered for the pool yet';
  return entries.flatMap(linesOf).join('\n');
}

/** Nothing for an image with the same inside, as most are. */
function contentsLines({ summary, unreadable = [] }: NonNullable<HistoryEntry['contents']> = {}): string[] {
  if (summary === undefined) return [];
  return [`  contents: ${[summary, ...unreadable].join('; ')}`];
}

function linesOf(entry: HistoryEntry): string[] {
  const {
    at,
    config,
    change,
    image,
    way,
    forRollback,
    result,
    message,
    changes,
    contents,
    wanted,
    nodes,
    revision,
  } = entry;
  const state = result === 'Succeeded' ? '' : `, ${result}${message === undefined ? '' : `: ${message}`}`;
  const use = [...(wanted ? ['target'] : []), ...(nodes === 0 ? [] : [`run by ${plural(nodes, 'node')}`])];
  return [
    `${at}  ${config}  (${way}${forRollback === undefined ? '' : ' for a rollback'}${state})${use.length === 0 ? '' : `  <- ${use.join(', ')}`}`,
    `  change ${change}`,
    ...(revision === undefined ? [] : [`  revision ${revision.number}, first assigned ${revision.at}`]),
    ...(image === undefined ? [] : [`  ${image}`]),
    ...contentsLines(contents),
    ...(changes ?? []).map(
      ({ subject, change, machineConfigs }) =>
        `  ${change} ${subject}${machineConfigs.length === 0 ? '' : ` (${machineConfigs.join(', ')})`}`,
    ),
  ];
}
