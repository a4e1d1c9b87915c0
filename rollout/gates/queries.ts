import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { StartHold } from './hold.ts';
import { type HoldState, monitored } from './monitored.ts';

/** What a hold says while the answer is missing: `shale doctor` looks for it. */
export const QUERIES_UNKNOWN = 'it is unknown whether any has a result';

/** The pool waits while queries that it names have a result. */
export const queries = {
  kind: 'start',
  reasons: ['QueriesHold', 'QueriesUnknown'],
  hold: (
    { queries: look }: { readonly queries?: () => HoldState },
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `queries (${fieldOf('holdOnQueries')})`,
      unknown: QUERIES_UNKNOWN,
      reasons: { holds: 'QueriesHold', unknown: 'QueriesUnknown' },
    }),
} as const;
