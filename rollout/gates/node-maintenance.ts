import type { HolderGate } from './gate.ts';

export const NODE_MAINTENANCE = 'NodeMaintenance';

/** medik8s' NodeMaintenance is active. Its operator takes the node lease as well, after the object is there. */
export const nodeMaintenance: HolderGate = {
  kind: 'holder',
  hold: ({ inMaintenance }) =>
    inMaintenance ? { reason: NODE_MAINTENANCE, message: 'a NodeMaintenance is active' } : undefined,
};
