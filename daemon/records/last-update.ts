import path from 'node:path';
import { UpdateRecord } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
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

function fileIn(root: string): string {
  return path.join(root, nodePaths.state, 'last-update.json');
}
