import path from 'node:path';
import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import { UpdateRecord } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { readRecord, writeRecord } from './durable-json.ts';

/**
 * How the last update ended. It is on the disk because a failure has to outlive the daemon: a target that failed is not
 * tried again, however often the daemon or the node starts.
 *
 * @param root the running root.
 * @returns undefined on a node that Shale has never updated. @throws RecordError
 */
export function readLastUpdate(root: string): Promise<UpdateRecord | undefined> {
  return readRecord(fileIn(root), UpdateRecord);
}

/** Writes how an update ended, whole or not at all, and durably. */
export function writeLastUpdate(root: string, record: UpdateRecord): Promise<void> {
  return writeRecord(fileIn(root), record);
}

/**
 * How long the other sort of update takes would be forgotten with the first live one after a reboot; who plans the next
 * change asks for it.
 *
 * @param actions of the update that ends.
 * @param last how the update before it ended.
 * @returns what the new record says of earlier ones.
 */
export function earlierThan(
  actions: readonly DisruptionAction[],
  last: UpdateRecord | undefined,
): Pick<UpdateRecord, 'earlier'> {
  if (last === undefined) return {};
  const isOfOtherSort = isDisruptive(last.actions) !== isDisruptive(actions);
  if (last.result === 'Succeeded' && isOfOtherSort) {
    const { config, image, startedAt, finishedAt } = last;
    const target = { config, ...present({ image }) };
    return { earlier: { ...target, actions: last.actions, startedAt, finishedAt } };
  }
  const { earlier } = last;
  return earlier === undefined || isDisruptive(earlier.actions) === isDisruptive(actions) ? {} : { earlier };
}

function fileIn(root: string): string {
  return path.join(root, nodePaths.state, 'last-update.json');
}
