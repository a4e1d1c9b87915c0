import { annotations } from '../../api/names.ts';
import { flagOn, formatFlag } from '../../api/node-flag.ts';
import type { HolderGate } from './gate.ts';

export const PLANNED_MAINTENANCE = 'PlannedMaintenance';

/** Somebody flagged the node for maintenance. A flag that can't be parsed is also in effect. */
export const plannedMaintenance: HolderGate = {
  kind: 'holder',
  hold: ({ node }, now) => {
    const flagged = flagOn(node, annotations.plannedMaintenance);
    if (flagged === undefined || Date.parse(flagged.flag?.until ?? '') <= now) return undefined;
    const message = formatFlag('flagged for maintenance', annotations.plannedMaintenance, flagged.flag);
    return { reason: PLANNED_MAINTENANCE, message };
  },
};
