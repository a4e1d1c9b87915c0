import type { HolderGate } from './gate.ts';

/** medik8s' NodeMaintenance is active. Its operator takes the node lease as well, after the object is there. */
export const nodeMaintenance: HolderGate = {
  kind: 'holder',
  hold: ({ inMaintenance }) =>
    inMaintenance ? { reason: 'NodeMaintenance', message: 'a NodeMaintenance is active' } : undefined,
};
