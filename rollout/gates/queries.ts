import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { StartHold } from './hold.ts';
import { type HoldState, monitored } from './monitored.ts';

/** Reason of the hold while the answer is missing. */
export const QUERIES_UNKNOWN = 'QueriesUnknown';

/** The pool waits while queries that it names have a result. */
export const queries = {
  kind: 'start',
  reasons: ['QueriesHold', QUERIES_UNKNOWN],
  hold: (
    { queries: look }: { readonly queries?: () => HoldState },
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `queries (${fieldOf('holdOnQueries')})`,
      unknown: 'it is unknown whether any has a result',
      reasons: { holds: 'QueriesHold', unknown: QUERIES_UNKNOWN },
    }),
} as const;
