import type { ObservedCluster } from '../observe/observed-cluster.ts';
import { obstacleOf } from '../observe/obstacles.ts';
import { textTable } from '../text-table.ts';
import { flagOf } from './flag.ts';

/** A node that somebody works on, or wants to. `-o json` prints a list of these. */
export interface MaintenanceEntry {
  readonly node: string;
  readonly by?: string;
  readonly reason?: string;
  /** RFC 3339; absent: until it is ended. */
  readonly until?: string;
  /** Why a rollout passes the node by now; absent once the time is over. */
  readonly obstacle?: string;
  readonly cordoned: boolean;
}

/** @returns every node that is flagged, leased to another than the operator, or otherwise left alone by rollouts. */
export function maintenanceList(seen: ObservedCluster, now: number): readonly MaintenanceEntry[] {
  return seen.nodes
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((node) => {
      const flag = flagOf(node);
      const obstacle = obstacleOf(seen, node.metadata.name, now);
      if (flag === undefined && obstacle === undefined) return [];
      return [
        {
          node: node.metadata.name,
          ...(flag === undefined || flag.by === '' ? {} : { by: flag.by }),
          ...(flag === undefined || flag.reason === '' ? {} : { reason: flag.reason }),
          ...(flag?.until === undefined ? {} : { until: flag.until }),
          ...(obstacle === undefined ? {} : { obstacle }),
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
