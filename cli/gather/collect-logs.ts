import { Nodes } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import type { Connection } from '../../cluster/connection.ts';
import { resourcePath } from '../../cluster/resource-path.ts';
import type { Collected } from './collect.ts';
import { readText } from './read-text.ts';

/** The units by which a node boots, and runs its pods; of those that it doesn't have the journal is empty. */
const UNITS = [
  'kubelet',
  'crio',
  'containerd',
  'ostree-finalize-staged',
  'rpm-ostreed',
  'bootc-fetch-apply-updates',
];
/** Lines of each unit's journal, the last ones. */
const JOURNAL_LINES = 5_000;
/** A report about a fleet is not made better by the journals of all of it. */
const MOST_NODES = 20;

/** @returns names of the nodes that have not arrived where they should be, by name, and as many as a report is to have. */
export function nodesInQuestion(nodes: readonly MachineConfigNode[]): readonly string[] {
  return nodes
    .filter(
      ({ status }) =>
        !conditionIsTrue(status?.conditions, 'Updated') ||
        conditionIsTrue(status?.conditions, 'NodeDegraded'),
    )
    .map(({ metadata }) => metadata.name)
    .toSorted()
    .slice(0, MOST_NODES);
}

/**
 * Reads the journals of a node's units through its kubelet (NodeLogQuery, KEP-2258), where that answers: it has to be
 * switched on (`enableSystemLogQuery`), and whoever asks needs `get` on `nodes/proxy`.
 *
 * @throws the signal's reason.
 */
export async function collectJournals(
  connection: Connection,
  node: string,
  signal: AbortSignal,
): Promise<Collected> {
  const path = `${resourcePath(Nodes, { name: node, subresource: 'proxy' })}/logs/`;
  const files: { name: string; text: string }[] = [];
  for (const unit of UNITS) {
    const answer = await readText(
      connection,
      path,
      { query: unit, tailLines: String(JOURNAL_LINES) },
      signal,
    );
    // What keeps one from being read keeps all: the kubelet, or the right to ask it.
    if (!answer.ok) return { files, problems: [`journals of node ${node}: ${answer.why}`] };
    if (!isEmpty(answer.text)) files.push({ name: `journals/${node}/${unit}.log`, text: answer.text });
  }
  return { files, problems: [] };
}

/** journalctl's word for it. */
function isEmpty(journal: string): boolean {
  return journal.trim() === '' || journal.trim() === '-- No entries --';
}
