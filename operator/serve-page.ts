import type { Logger } from 'pino';
import { present } from '../api/present.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import type { Work } from '../cluster/process.ts';
import { createPageCaches, type PageCaches } from '../page/server/page-caches.ts';
import type { OperatorFlags } from './flags.ts';

export type PageFlags = Pick<OperatorFlags, 'pagePort' | 'pageTlsDir' | 'clusterName' | 'leaseNamespace'>;

/**
 * Loads the page's code only where the page is served. If the page can't be served, the operator logs why and continues.
 *
 * @param caches not started yet.
 * @returns what serves the page; undefined without a port, and where there is no page.
 */
export async function preparePage(
  client: ApiClient,
  caches: PageCaches,
  flags: PageFlags,
  log: Logger,
): Promise<Work | undefined> {
  if (flags.pagePort === 0) return undefined;
  const logFailure = (error: unknown) => log.error({ err: error }, 'the live page is not served');
  const options = {
    port: flags.pagePort,
    leaseNamespace: flags.leaseNamespace,
    ...present({ tlsDir: flags.pageTlsDir, cluster: flags.clusterName }),
  };
  try {
    const { livePage } = await import('./live-page.ts');
    const serve = await livePage(client, caches, options, log);
    return (signal) =>
      serve(signal).catch((error: unknown) => {
        if (!signal.aborted) logFailure(error);
      });
  } catch (error) {
    logFailure(error);
    return undefined;
  }
}

/**
 * A Service sends a browser to any operator, so one that doesn't lead serves the page, too: from watches for the page alone.
 *
 * @returns when the signal is aborted, or the page can't be served.
 */
export async function servePageWhileWaiting(
  client: ApiClient,
  flags: PageFlags,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { caches, start } = createPageCaches(client, flags.leaseNamespace, log);
  const serve = await preparePage(client, caches, flags, log);
  if (serve === undefined) return;
  await Promise.all([start(signal), serve(signal)]);
}
