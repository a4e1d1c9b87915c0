import { z } from 'zod';
import type { Ask } from './hold-lookup.ts';
import { askEndpoint, type EndpointSettings, refusal } from './monitoring-endpoints.ts';

/** What of an answer matters here (Prometheus' HTTP API, "Format overview" and "Instant queries"). */
const Answer = z.object({
  status: z.literal('success'),
  data: z.object({ resultType: z.string(), result: z.array(z.unknown()) }),
  /** Of a query that was carried out all the same; Thanos says so where a store did not answer. */
  warnings: z.array(z.string()).default([]),
});

/** What is wrong with a question: `error` has the place in the query. */
const Refused = z.object({ status: z.literal('error'), error: z.string() });

/** @returns what asks a Prometheus, or what has its HTTP API, for a query: the query itself if it has a result now. */
export function prometheus(endpoint: EndpointSettings): Ask<string> {
  return (query, signal) =>
    askEndpoint(
      'Prometheus',
      endpoint,
      { path: '/api/v1/query', query: { query }, signal },
      (status, body) => (hasResult(query, status, body) ? [query] : []),
    );
}

/**
 * As in an alerting rule, what a query has found are its series, whatever their values. A scalar is always there, so it is
 * no answer, and an empty result that may lack series is none either.
 */
function hasResult(query: string, status: number | undefined, body: unknown): boolean {
  const refused = Refused.safeParse(body);
  if (refused.success) throw new Error(`it refuses the query ${query}: ${refused.data.error}`);
  if (status !== 200) throw refusal(status, body);
  const answer = Answer.safeParse(body);
  if (!answer.success) throw new Error('it answers something else than the result of a query');
  const { data, warnings } = answer.data;
  if (data.resultType !== 'vector')
    throw new Error(
      `the result of ${query} is a ${data.resultType}: expected an instant vector, which is empty while updates may start`,
    );
  if (data.result.length > 0) return true;
  if (warnings.length > 0)
    throw new Error(`the result of ${query} may be incomplete: ${warnings.join(', ')}`);
  return false;
}
