import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { type Connection, outsideAgentFor } from '../cluster/connection.ts';
import { readJson, send } from '../cluster/http-request.ts';
import type { AskAlerts } from './alert-lookup.ts';

export interface AlertmanagerSettings {
  /** Its root: the path of the API follows. */
  readonly url: URL;
  /** File with a token for it. */
  readonly tokenFile?: string;
  /** File with the certificates to trust for it. */
  readonly caFile?: string;
}

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

/**
 * @returns what asks an Alertmanager by its API v2. The files are read for each question, because tokens and certificates are
 *   renewed.
 */
export function alertmanager({ url, tokenFile, caFile }: AlertmanagerSettings): AskAlerts {
  return async (matchers, signal) => {
    const isPlain = url.protocol === 'http:';
    const agent = outsideAgentFor(url, caFile === undefined || isPlain ? {} : { ca: await readFile(caFile) });
    const connection: Connection = {
      baseUrl: url,
      agent,
      authorize: async () =>
        tokenFile === undefined
          ? {}
          : { authorization: `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}` },
    };
    const query = { active: 'true', silenced: 'false', inhibited: 'false', unprocessed: 'false' };
    try {
      const path = '/api/v2/alerts';
      const response = await send(connection, {
        ...{ method: 'GET', path, query: { ...query, filter: matchers }, signal },
      });
      const body = await readJson(response);
      if (response.statusCode !== 200)
        throw new Error(`it answers ${response.statusCode}: ${JSON.stringify(body ?? '').slice(0, 200)}`);
      return activeOnes(body);
    } catch (error) {
      throw new Error(`Alertmanager ${url.host}: ${reasonOf(error, signal)}`, { cause: error });
    } finally {
      agent.destroy();
    }
  };
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

function reasonOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'it did not answer in time';
  return error instanceof Error ? error.message : String(error);
}
