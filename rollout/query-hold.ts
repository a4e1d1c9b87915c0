import type { Hold } from './hold-lookup.ts';

/** What holds a pool's updates back (shale.dev/hold-on-queries): a query of PromQL that has a result. */
export type QueryHold = Hold<string>;

/** Of a URL; proxies and servers take 8 KiB of it and more. */
const LONGEST = 4096;

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
  const long = questions.find((query) => encodeURIComponent(query).length > LONGEST);
  if (long !== undefined)
    throw new Error(
      `a query is longer than ${LONGEST} characters in a URL: record it by a rule of Prometheus`,
    );
  return { kind: 'named', questions };
}
