import type { PoolGate } from './gate.ts';

/** The cluster's admin keeps Shale from updating any node (MachineConfiguration, spec.managementState). */
export const unmanaged: PoolGate = {
  kind: 'pool',
  hold: ({ settings: { suspended } }) =>
    suspended === undefined ? undefined : { reason: 'Unmanaged', message: suspended },
};
