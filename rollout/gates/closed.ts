import type { PoolGate } from './gate.ts';

export const NOTHING_BEGINS = 'NothingBegins';

/** A setting of the pool for which no value is safe can't be read, or what it asks for is refused. */
export const closed: PoolGate = {
  kind: 'pool',
  hold: ({ settings: { closed: why } }) =>
    why === undefined ? undefined : { reason: NOTHING_BEGINS, message: why },
};
