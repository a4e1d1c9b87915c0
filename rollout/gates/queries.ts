import { annotations } from '../../api/names.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { StartHold } from './hold.ts';
import { type HoldState, monitored, type Questions } from './monitored.ts';

/** What holds a pool's updates back (shale.dev/hold-on-queries): a query of PromQL that has a result. */
export type QueryHold = Questions<string>;

/** Characters of a URL; proxies and servers take 8 KiB of it and more. */
const LONGEST_QUERY = 4096;

/**
 * Reads queries, one in a line. Whether they are PromQL only Prometheus can say.
 *
 * @throws Error that says what can't be read.
 */
export function parseQueryHold(text: string): QueryHold {
  const questions = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (questions.length === 0) throw new Error('it has no query');
  const long = questions.find((query) => encodeURIComponent(query).length > LONGEST_QUERY);
  if (long !== undefined)
    throw new Error(
      `a query is longer than ${LONGEST_QUERY} characters in a URL: record it by a rule of Prometheus`,
    );
  return { kind: 'named', questions };
}

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
      what: `queries (annotation ${annotations.holdOnQueries})`,
      unknown: QUERIES_UNKNOWN,
      reasons: { holds: 'QueriesHold', unknown: 'QueriesUnknown' },
    }),
} as const;
