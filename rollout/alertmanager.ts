import { z } from 'zod';
import type { Ask } from './hold-lookup.ts';
import type { AlertMatchers } from './hold-questions.ts';
import { askEndpoint, type EndpointSettings, refusal } from './monitoring-endpoints.ts';

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
    askEndpoint(
      'Alertmanager',
      endpoint,
      { path: '/api/v2/alerts', query: { ...which, filter: matchers }, signal },
      (status, body) => {
        if (status !== 200) throw refusal(status, body);
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
