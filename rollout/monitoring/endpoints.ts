import { z } from 'zod';
import type { AlertMatchers } from '../../api/pool-settings/values.ts';
import { askOutside, type EndpointSettings, unexpectedAnswer } from '../outside-endpoint.ts';
import type { Ask } from './lookup.ts';

/** What of an alert matters here (Alertmanager's API v2, gettableAlert). */
const Alerts = z.array(
  z.object({
    labels: z.record(z.string(), z.string()),
    status: z.object({
      state: z.string(),
      silencedBy: z.array(z.string()).default([]),
      inhibitedBy: z.array(z.string()).default([]),
    }),
  }),
);

/** @returns what asks an Alertmanager by its API v2 for the names of the active alerts that meet all matchers. */
export function alertmanager(endpoint: EndpointSettings): Ask<AlertMatchers> {
  const which = { active: 'true', silenced: 'false', inhibited: 'false', unprocessed: 'false' };
  return (matchers, signal) =>
    askOutside(
      'Alertmanager',
      endpoint,
      { path: '/api/v2/alerts', query: { ...which, filter: matchers }, signal },
      (status, body) => {
        if (status !== 200) throw unexpectedAnswer(status, body);
        return activeOnes(body);
      },
    );
}

/** Whatever the server makes of the query: what is silenced or inhibited holds nothing back. */
function activeOnes(body: unknown): readonly string[] {
  const alerts = Alerts.safeParse(body);
  if (!alerts.success) throw new Error('it answers something else than a list of alerts');
  return alerts.data
    .filter(
      ({ status: { state, silencedBy, inhibitedBy } }) =>
        state === 'active' && silencedBy.length === 0 && inhibitedBy.length === 0,
    )
    .map(({ labels }) => labels['alertname'] ?? 'an alert without a name');
}

/** What of an answer matters here (Prometheus' HTTP API, "Format overview" and "Instant queries"). */
const QueryAnswer = z.object({
  status: z.literal('success'),
  data: z.object({ resultType: z.string(), result: z.array(z.unknown()) }),
  /** Of a query that was carried out all the same; Thanos says so where a store did not answer. */
  warnings: z.array(z.string()).default([]),
});

/** What is wrong with a question: `error` has the place in the query. */
const RefusedQuery = z.object({ status: z.literal('error'), error: z.string() });

/** @returns what asks a Prometheus, or what has its HTTP API, for a query: the query itself if it has a result now. */
export function prometheus(endpoint: EndpointSettings): Ask<string> {
  return (query, signal) =>
    askOutside('Prometheus', endpoint, { path: '/api/v1/query', query: { query }, signal }, (status, body) =>
      hasResult(query, status, body) ? [query] : [],
    );
}

/**
 * As in an alerting rule, what a query has found are its series, whatever their values. A scalar is always there, so it
 * is no answer, and an empty result that may lack series is none either.
 */
function hasResult(query: string, status: number | undefined, body: unknown): boolean {
  const refused = RefusedQuery.safeParse(body);
  if (refused.success) throw new Error(`it refuses the query ${query}: ${refused.data.error}`);
  if (status !== 200) throw unexpectedAnswer(status, body);
  const answer = QueryAnswer.safeParse(body);
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
