import { text } from 'node:stream/consumers';
import { errorMessage } from '../../api/error-message.ts';
import { Nodes, type Pod, Pods } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Connection } from '../../cluster/connection.ts';
import { resourcePath, send } from '../../cluster/http-request.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import type { Places } from '../observe/cluster-watch.ts';

/** One file of a bundle. */
export interface BundleFile {
  /** Relative, with `/`. */
  readonly name: string;
  readonly text: string;
}

/** What was collected, and what could not be collected and why. */
export interface Collected {
  readonly files: readonly BundleFile[];
  readonly problems: readonly string[];
}

/** Lines of each container's log, the last ones. */
const LOG_LINES = 20_000;
/** The units that boot a node and run its pods; units that a node doesn't have have an empty journal. */
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
/** A report about a large cluster doesn't need the journals of every node. */
const MOST_NODES = 20;

/** @returns the names of the nodes that don't run their target, sorted, up to a limit. */
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
 * Reads the journals of a node's units through its kubelet (NodeLogQuery, KEP-2258). The kubelet needs
 * `enableSystemLogQuery`, and the user needs `get` on `nodes/proxy`.
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
    // An error concerns the kubelet or the user's permissions, and so every unit.
    if (!answer.ok) return { files, problems: [`journals of node ${node}: ${answer.why}`] };
    if (!isEmpty(answer.text)) files.push({ name: `journals/${node}/${unit}.log`, text: answer.text });
  }
  return { files, problems: [] };
}

/** journalctl prints `-- No entries --`. */
function isEmpty(journal: string): boolean {
  return journal.trim() === '' || journal.trim() === '-- No entries --';
}

export interface LogSource {
  readonly connection: Connection;
  readonly places: Places;
  readonly signal: AbortSignal;
}

/** The log of each container and, after a restart, of its previous instance. */
export function collectLogs(collecting: LogSource, { metadata, spec, status }: Pod): Promise<Collected>[] {
  return spec.containers.flatMap(({ name }) => {
    const restarts =
      status?.containerStatuses?.find((container) => container.name === name)?.restartCount ?? 0;
    const runs = restarts > 0 ? (['current', 'previous'] as const) : (['current'] as const);
    return runs.map((run) => collectLog(collecting, metadata.name, name, run));
  });
}

async function collectLog(
  { connection, places, signal }: LogSource,
  pod: string,
  container: string,
  run: 'current' | 'previous',
): Promise<Collected> {
  const what = `${pod}/${container}${run === 'previous' ? '.previous' : ''}`;
  const path = resourcePath(Pods, { namespace: places.namespace, name: pod, subresource: 'log' });
  const query = {
    container,
    tailLines: String(LOG_LINES),
    timestamps: 'true',
    previous: String(run === 'previous'),
  };
  const answer = await readText(connection, path, query, signal);
  return answer.ok
    ? { files: [{ name: `logs/${what}.log`, text: answer.text }], problems: [] }
    : { files: [], problems: [`log of ${what}: ${answer.why}`] };
}

type TextAnswer =
  | { readonly ok: true; readonly text: string }
  /** Why there is none. */
  | { readonly ok: false; readonly why: string };

const DEADLINE_MS = 60_000;

/** Reads a response in plain text, such as a log. @throws the signal's reason. */
async function readText(
  connection: Connection,
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<TextAnswer> {
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const response = await send(connection, { method: 'GET', path, query, signal: either });
    const body = await text(response);
    return response.statusCode === 200
      ? { ok: true, text: body }
      : { ok: false, why: `HTTP ${response.statusCode}: ${messageOf(body)}` };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, why: errorMessage(error) };
  }
}

/** @returns the message of a Status object (Kubernetes API concepts, "Response status"). */
function messageOf(body: string): string {
  try {
    return String((JSON.parse(body) as { message?: unknown }).message);
  } catch {
    return body.slice(0, 200).trim();
  }
}
