import { RepairRecord } from '../../api/annotation-requests.ts';
import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import { UpdateRecord } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { stateRecord } from './durable-json.ts';

/**
 * How the last update ended. It is on the disk because a failure has to outlive the daemon: a target that failed is not
 * tried again, however often the daemon or the node starts.
 */
export const { read: readLastUpdate, write: writeLastUpdate } = stateRecord('last-update.json', UpdateRecord);

/**
 * How the last requested repair ended. It is on the disk because a request stays on the MachineConfigNode: a daemon
 * that starts must not overwrite what somebody has changed since.
 */
export const { read: readLastRepair, write: writeLastRepair } = stateRecord('last-repair.json', RepairRecord);

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
  if (last.result === 'Succeeded' && last.requested === undefined && isOfOtherSort) {
    const { config, image, startedAt, finishedAt } = last;
    const target = { config, ...present({ image }) };
    return { earlier: { ...target, actions: last.actions, startedAt, finishedAt } };
  }
  const { earlier } = last;
  return earlier === undefined || isDisruptive(earlier.actions) === isDisruptive(actions) ? {} : { earlier };
}
