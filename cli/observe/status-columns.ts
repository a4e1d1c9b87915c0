import { formatDuration } from '../../api/duration.ts';
import { by } from '../../api/order.ts';
import type { BuildView, PoolView } from '../../view/schemas.ts';
import type { NodeGroup } from './node-rows.ts';

/** A column of a table of `shale status`. */
export interface Column<Row> {
  readonly head: string;
  /** Absent: in both. */
  readonly only?: 'wide' | 'narrow';
  /** @param now ms since the epoch. */
  readonly cell: (row: Row, now: number) => string;
}

export const POOL_COLUMNS: readonly Column<PoolView>[] = [
  { head: 'POOL', cell: ({ name }) => name },
  { head: 'STATE', cell: ({ state }) => state },
  { head: 'UPDATED', cell: ({ nodes }) => `${nodes.updated}/${nodes.total}` },
  { head: 'UNAVAILABLE', cell: ({ nodes }) => String(nodes.unavailable) },
  { head: 'SINCE', cell: ({ since }, now) => ago(since, now) },
  {
    head: 'CONFIG',
    only: 'narrow',
    cell: ({ name, config }) => config.desired?.replace(`rendered-${name}-`, '') ?? '-',
  },
  { head: 'CONFIG', only: 'wide', cell: ({ config }) => config.desired ?? '-' },
  { head: 'RUNNING', only: 'wide', cell: ({ config }) => config.running ?? '-' },
  { head: 'IMAGE', only: 'wide', cell: ({ image }) => image ?? '-' },
];

export const BUILD_COLUMNS: readonly Column<BuildView>[] = [
  { head: 'BUILD', cell: ({ name }) => name },
  { head: 'POOL', cell: ({ pool }) => pool },
  { head: 'STATE', cell: ({ state }) => state },
  { head: 'SINCE', cell: ({ since }, now) => ago(since, now) },
  {
    head: 'MESSAGE',
    cell: ({ state, what, lastLine }) => (state === 'Failed' ? what : lastLine) ?? lastLine ?? what ?? '',
  },
];

/** Of nodes that wait for the same, the first one stands for all. */
export const NODE_COLUMNS: readonly Column<NodeGroup>[] = [
  {
    head: 'NODE',
    cell: ({ nodes: [first, ...others] }) =>
      others.length === 0 ? first.name : `${first.name} and ${others.length} more`,
  },
  { head: 'POOL', cell: ({ nodes: [{ pool }] }) => pool },
  { head: 'STATE', cell: ({ nodes: [{ state }] }) => state },
  {
    head: 'SINCE',
    cell: ({ nodes }, now) =>
      ago(nodes.flatMap(({ since }) => since ?? []).toSorted(by((time) => Date.parse(time)))[0], now),
  },
  { head: 'MESSAGE', cell: ({ message }) => message },
  { head: 'MODE', only: 'wide', cell: ({ nodes: [{ mode }] }) => mode ?? '-' },
  { head: 'LEASE', only: 'wide', cell: ({ nodes: [{ leaseHolder }] }) => leaseHolder ?? '-' },
  { head: 'CONFIG', only: 'wide', cell: ({ nodes: [{ config }] }) => config.current ?? '-' },
  { head: 'IMAGE', only: 'wide', cell: ({ nodes: [{ image }] }) => image?.current ?? '-' },
];

function ago(time: string | undefined, now: number): string {
  return time === undefined ? '-' : formatDuration(now - Date.parse(time));
}
