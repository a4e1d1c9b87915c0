import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { Informer } from '../../../cluster/informer.ts';
import { type NodeRow, rowOfLastUpdate } from './report.ts';

/** Collects what nodes did, update by update. */
export interface UpdateCollector {
  /** @returns the rows since it was last asked, in the order in which the updates ended. */
  take(): readonly NodeRow[];
}

/** @param nodes an informer; an update that it brings is collected once. */
export function collectUpdates(nodes: Informer<MachineConfigNode>): UpdateCollector {
  const seen = new Map<string, string>();
  let rows: NodeRow[] = [];
  const look = (node: MachineConfigNode) => {
    const finishedAt = node.status?.lastUpdate?.finishedAt;
    const row = rowOfLastUpdate(node);
    const key = `${finishedAt ?? ''} ${row?.config ?? ''} ${row?.imageDigest ?? ''}`;
    if (row === undefined || seen.get(row.node) === key) return;
    seen.set(row.node, key);
    rows.push(row);
  };
  for (const node of nodes.list()) look(node);
  nodes.onChange(({ type, object }) => {
    if (type !== 'DELETED') look(object);
  });
  return {
    take() {
      const taken = rows;
      rows = [];
      return taken;
    },
  };
}
