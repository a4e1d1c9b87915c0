import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import type { ApiClient } from '../../cluster/api-client.ts';
import { readAssets } from '../../page/server/assets.ts';
import { LiveView } from '../../page/server/live-view.ts';
import type { PageCaches } from '../../page/server/page-caches.ts';
import { startPageServer } from '../../page/server/page-server.ts';
import { tokenAccess } from '../../page/server/token-access.ts';
import { MaintenanceLookup } from '../../rollout/node-maintenance.ts';

export interface LivePageOptions {
  readonly port: number;
  /** tls.crt and tls.key, as a Secret of type kubernetes.io/tls has them; absent: plain HTTP on loopback. */
  readonly tlsDir?: string;
  readonly leaseNamespace: string;
}

/**
 * Makes the operator's live page ready, with the operator's own caches: nothing is watched twice. Call it before they are
 * started.
 *
 * Tokens go over the wire, so without a certificate it listens on loopback alone, where `kubectl port-forward` ends.
 *
 * @returns what serves it until the signal. @throws PageNotBuilt; the system's error when the certificate can't be read.
 */
export async function livePage(
  client: ApiClient,
  caches: PageCaches,
  { port, tlsDir, leaseNamespace }: LivePageOptions,
  log: Logger,
): Promise<(signal: AbortSignal) => Promise<void>> {
  const assets = await readAssets(process.env['SHALE_PAGE_DIR']);
  const tls = tlsDir === undefined ? undefined : await certificate(tlsDir);
  const maintenance = new MaintenanceLookup(client, Date.now);
  const live = new LiveView({ caches, log, inMaintenance: (signal) => maintenance.nodes(signal) });
  const access = tokenAccess({ client, leaseNamespace, log });
  const where = tls === undefined ? { host: '127.0.0.1' } : { tls };
  return async (signal) => {
    const server = await startPageServer({ live, assets, access, port, ...where, log });
    log.info({ port: server.port, tls: tls !== undefined }, 'the live page is served');
    try {
      await live.run(signal);
    } finally {
      await server.close();
    }
  };
}

async function certificate(directory: string): Promise<{ readonly cert: Buffer; readonly key: Buffer }> {
  const [cert, key] = await Promise.all([
    readFile(path.join(directory, 'tls.crt')),
    readFile(path.join(directory, 'tls.key')),
  ]);
  return { cert, key };
}
