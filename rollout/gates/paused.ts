import type { PoolGate } from './gate.ts';

/** As in MCO: spec.paused of a pool. */
export const paused: PoolGate = {
  kind: 'pool',
  hold: ({ pool: { spec } }) =>
    spec.paused === true ? { reason: 'Paused', message: 'the pool is paused' } : undefined,
};
