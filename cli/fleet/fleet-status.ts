import { z } from 'zod';
import { plural } from '../../api/plural.ts';
import { narrowedTable, wrapped } from '../command-line/fitted-text.ts';
import { type Column, POOL_COLUMNS } from '../observe/status-columns.ts';
import { poolLines } from '../observe/status-text.ts';
import { StatusOutput, type StatusView } from '../observe/status-view.ts';
import type { ClusterFinding } from './fleet.ts';

/** What `shale status --clusters -o json` prints. */
export const FleetStatusOutput = z.array(
  z.union([
    z.strictObject({ cluster: z.string(), error: z.string() }),
    z.strictObject({ cluster: z.string(), status: StatusOutput }),
  ]),
);

/** The state of one of several clusters. */
export interface ClusterStatus {
  readonly status: StatusView;
}

interface TextOptions {
  readonly wide: boolean;
  /** ms since the epoch. */
  readonly now: number;
  /** Of the terminal; undefined: not a terminal. */
  readonly columns: number | undefined;
}

/**
 * @returns the pools of several clusters in one table, and below it what the pools wait for. Nodes and builds are left
 *   to the status of the cluster.
 */
export function formatFleetStatus(
  findings: readonly ClusterFinding<ClusterStatus>[],
  { wide, now, columns }: TextOptions,
): string {
  const shown = POOL_COLUMNS.filter(({ only }) => only === undefined || (only === 'wide') === wide);
  const head = ['CLUSTER', ...shown.map((column) => column.head)];
  const width = wide ? undefined : columns;
  const rows = findings.flatMap((finding) => rowsOf(finding, shown, now));
  const sentences = findings
    .flatMap((finding) => linesOf(finding, now))
    .flatMap((line) => wrapped(line, '  ', width));
  return [narrowedTable(head, rows, 4, width), sentences, [summaryOf(findings)]]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

type PoolColumn = (typeof POOL_COLUMNS)[number] extends Column<infer Row> ? Column<Row> : never;

function rowsOf(
  finding: ClusterFinding<ClusterStatus>,
  columns: readonly PoolColumn[],
  now: number,
): string[][] {
  const { cluster } = finding;
  if ('error' in finding)
    return [[cluster, ...columns.map(({ head }) => (head === 'STATE' ? 'Unknown' : '-'))]];
  const { pools } = finding.status;
  if (pools.length === 0) return [[cluster, ...columns.map(() => '-')]];
  return pools.map((pool) => [cluster, ...columns.map(({ cell }) => cell(pool, now))]);
}

function linesOf(finding: ClusterFinding<ClusterStatus>, now: number): readonly string[] {
  const { cluster } = finding;
  if ('error' in finding) return [`error: cluster ${cluster}: ${finding.error}`];
  const { pools, remarks } = finding.status;
  return [
    ...remarks.map((remark) => `warning: cluster ${cluster}: ${remark}`),
    ...pools.flatMap((pool) => poolLines(pool, now)).map((line) => `cluster ${cluster}: ${line}`),
  ];
}

function summaryOf(findings: readonly ClusterFinding<ClusterStatus>[]): string {
  const pools = findings.flatMap((finding) => ('error' in finding ? [] : finding.status.pools));
  const nodes = pools.reduce((sum, pool) => sum + pool.nodes.total, 0);
  const updated = pools.reduce((sum, pool) => sum + pool.nodes.updated, 0);
  return `${plural(findings.length, 'cluster')}: ${updated} of ${plural(nodes, 'node')} ${nodes === 1 ? 'is' : 'are'} up to date`;
}
