import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { monitored } from '../monitoring/monitored.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import type { StartHold } from './hold.ts';

/** Reason of the hold while the answer is missing. */
export const QUERIES_UNKNOWN = 'QueriesUnknown';

/** The pool waits while queries that it names have a result. */
export const queries = {
  kind: 'start',
  reasons: { QueriesHold: 'others', [QUERIES_UNKNOWN]: 'others' },
  hold: (
    { gateInputs: { queries: look } }: Pick<PoolObservation, 'gateInputs'>,
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `queries (${fieldOf('holdOnQueries')})`,
      unknown: 'it is unknown whether any has a result',
      reasons: { holds: 'QueriesHold', unknown: QUERIES_UNKNOWN },
    }),
} as const;
