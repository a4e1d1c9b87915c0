import { present } from '../../api/present.ts';
import { CHANGED, type Drift } from '../content/drift/drift.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { managedContent } from '../content/managed-content.ts';
import type { NodePorts } from '../host/host.ts';
import { readCurrent } from '../records/current.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { type LeftOut, readLeftOut, writeLeftOut } from '../records/left-out.ts';

/**
 * @param content what an update was to bring. @param drifts where the disk differs from that, at the update's end.
 * @param why the error of what could not be written, if there was one.
 * @returns what is not there; undefined where all of it is.
 */
export function leftOutOf(
  content: ManagedContent | undefined,
  drifts: readonly Drift[],
  why?: string,
): LeftOut | undefined {
  if (content === undefined || drifts.length === 0) return undefined;
  const differing = drifts.map(({ message }) => message);
  return { version: 1, config: content.config.name, differing, ...present({ why }) };
}

/**
 * Takes up the failure of an update that a daemon before 0.2 has ended: it had no record of what was left out, and
 * reported that as changed by hand, which held every other target back.
 *
 * @throws RecordError, what verifyWithLabels throws.
 */
export async function takeUpLeftOut(ports: NodePorts, signal: AbortSignal): Promise<void> {
  const { root } = ports.host;
  const last = await readLastUpdate(root);
  const isOfContent = last?.reason === 'ConfigDrift' && last.message?.startsWith(CHANGED) === true;
  if (last?.result !== 'Failed' || !isOfContent) return;
  const current = await readCurrent(root);
  if (current?.config !== last.config || (await readLeftOut(root)) !== undefined) return;
  const content = await managedContent(root, current);
  const drifts = await verifyWithLabels(ports, content, signal);
  await writeLeftOut(root, leftOutOf(content, drifts));
}
