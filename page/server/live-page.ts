import type { Logger } from 'pino';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { ProcessPart } from '../../cluster/process.ts';
import { awaitCertificate, followCertificate } from '../../cluster/serving-certificate.ts';
import { MaintenanceLookup } from '../../rollout/node-claims.ts';
import { ChangeReader } from './change-reader.ts';
import { LiveView } from './live-view.ts';
import { readAssets } from './page-assets.ts';
import type { PageCaches } from './page-caches.ts';
import { startPageServer } from './page-server.ts';
import { tokenAccess } from './token-access.ts';

export interface LivePageOptions {
  readonly port: number;
  /** tls.crt and tls.key, as a Secret of type kubernetes.io/tls has them; absent: plain HTTP on loopback. */
  readonly tlsDir?: string | undefined;
  /** ms between two checks of the certificate. */
  readonly checkMs?: number | undefined;
  readonly leaseNamespace: string;
  /** The name of the cluster, for the page's header. */
  readonly cluster?: string | undefined;
}

/** A page that is prepared. */
export interface LivePage {
  /** Serves it until the signal, once there is a certificate where one is asked for. */
  readonly serve: ProcessPart;
  /** @returns why the page shows nothing yet, in words; undefined when it does. */
  notReady(): string | undefined;
}

/**
 * Prepares the live page of a cluster. Call it before its caches are started.
 *
 * Tokens go over the wire, so without a certificate it listens on loopback alone, where `kubectl port-forward` ends.
 *
 * @throws PageNotBuilt.
 */
export async function livePage(
  client: ApiClient,
  caches: PageCaches,
  { port, tlsDir, checkMs, leaseNamespace, cluster }: LivePageOptions,
  log: Logger,
): Promise<LivePage> {
  const assets = await readAssets(process.env['SHALE_PAGE_DIR']);
  const maintenance = new MaintenanceLookup(client, Date.now);
  const live = new LiveView({ caches, log, inMaintenance: (signal) => maintenance.nodes(signal) });
  const access = tokenAccess({ client, leaseNamespace, log });
  const what = {
    live,
    assets,
    access,
    changes: new ChangeReader(client, caches),
    cluster,
  };
  const files = tlsDir === undefined ? undefined : { directory: tlsDir, of: 'the live page', checkMs, log };
  let isServed = false;
  return {
    async serve(signal) {
      const identity = files && { files, inUse: await awaitCertificate(files, signal) };
      const where = identity === undefined ? { host: '127.0.0.1' } : { tls: identity.inUse };
      const server = await startPageServer({ ...what, port, ...where, log });
      isServed = true;
      log.info({ port: server.port, tls: identity !== undefined }, 'the live page is served');
      const following = identity && followCertificate(identity, server.setCertificate, signal);
      try {
        await live.run(signal);
      } finally {
        await server.close();
        await following;
      }
    },
    notReady() {
      if (!isServed) return `waiting for tls.crt and tls.key in ${tlsDir}`;
      return live.current === undefined ? 'reading the cluster' : undefined;
    },
  };
}
