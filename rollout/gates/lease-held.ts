import type { HolderGate } from './gate.ts';

export const LEASE_HELD = 'LeaseHeld';

/**
 * Who holds a node's Lease alone may disrupt it: medik8s' operators, `shale maintenance`, and all who ask as they do.
 */
export const leaseHeld: HolderGate = {
  kind: 'holder',
  hold: ({ lease }) =>
    lease.by === 'other'
      ? { reason: LEASE_HELD, message: `its lease is held by ${lease.holder}` }
      : undefined,
};
