import path from 'node:path';
import { RepairRecord } from '../../api/annotation-requests.ts';
import { nodePaths } from '../../api/names.ts';
import { readRecord, writeRecord } from './durable-json.ts';

/**
 * How the last requested repair ended. It is on the disk because a request stays on the MachineConfigNode: a daemon that
 * starts must not overwrite what somebody has changed since.
 *
 * @param root the running root.
 * @returns undefined on a node that was never asked. @throws RecordError
 */
export function readLastRepair(root: string): Promise<RepairRecord | undefined> {
  return readRecord(fileIn(root), RepairRecord);
}

/** Writes how a repair ended, whole or not at all, and durably. */
export function writeLastRepair(root: string, record: RepairRecord): Promise<void> {
  return writeRecord(fileIn(root), record);
}

function fileIn(root: string): string {
  return path.join(root, nodePaths.state, 'last-repair.json');
}
