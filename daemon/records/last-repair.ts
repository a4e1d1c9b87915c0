import { RepairRecord } from '../../api/annotation-requests.ts';
import { stateRecord } from './durable-json.ts';

/**
 * How the last requested repair ended. It is on the disk because a request stays on the MachineConfigNode: a daemon
 * that starts must not overwrite what somebody has changed since.
 */
export const { read: readLastRepair, write: writeLastRepair } = stateRecord('last-repair.json', RepairRecord);
