import { Command } from 'commander';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { DEFAULT_LEASE_NAMESPACE, PAGE_DEPLOYMENT } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { processConnection } from '../cluster/connection.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { createLogger, traceRequests } from '../cluster/log.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { endTogether, untilShutDown, wholeNumber } from '../cluster/process.ts';
import { metricsPage, startTelemetry } from '../cluster/telemetry.ts';
import { livePage } from './server/live-page.ts';
import { createPageCaches } from './server/page-caches.ts';

export interface PageFlags extends LogFlags {
  readonly port: number;
  readonly tlsDir?: string;
  readonly clusterName?: string;
  readonly leaseNamespace: string;
  readonly metricsPort: number;
  readonly kubeconfig?: string;
}

/** `shale page`: the process of the live page's Deployment. */
export function pageCommand(): Command {
  return withPageFlags(new Command('page')).action((flags: PageFlags) =>
    untilShutDown((signal) => runPage(flags, signal)),
  );
}

/** @returns the command with every flag of the page. */
export function withPageFlags(command: Command): Command {
  return withLogFlags(command)
    .description('Run the live page: shows the rollout to browsers and only reads; runs in the cluster.')
    .option(
      '--port <port>',
      'port of the page, on loopback unless --tls-dir is set',
      wholeNumber(1, 65_535),
      8090,
    )
    .option(
      '--tls-dir <dir>',
      'directory with tls.crt and tls.key of the page, which is then served on every address of the pod',
    )
    .option('--cluster-name <name>', 'name of the cluster, which the page shows in its header')
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE)
    .option(
      '--metrics-port <port>',
      'port for /metrics, /healthz and /readyz; 0 disables it',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--kubeconfig <file>', 'kubeconfig of the cluster, for a page outside of it');
}

/**
 * Serves the page from watches of its own until the signal, so that whatever it computes takes no time from the
 * operator. An API server that is away doesn't end it.
 *
 * @param connect opens a client; the flags say where to, unless a test says it.
 * @throws PageNotBuilt; what keeps it from being served, because a new process starts over.
 */
export async function runPage(
  flags: PageFlags,
  signal: AbortSignal,
  connect: typeof connectByFlags = connectByFlags,
): Promise<void> {
  const log = createLogger(PAGE_DEPLOYMENT, flags.logLevel, flags.logFormat);
  const client = await connect(flags, log);
  const { port, leaseNamespace, metricsPort, tlsDir, clusterName } = flags;
  const { caches, start } = createPageCaches(client, leaseNamespace, log);
  const options = { port, leaseNamespace, tlsDir, cluster: clusterName };
  const { serve, notReady } = await livePage(client, caches, options, log);
  const telemetry =
    metricsPort === 0
      ? undefined
      : await startTelemetry({ port: metricsPort, metrics: metricsPage(new Registry()), notReady });
  try {
    await endTogether([start, serve], signal);
  } finally {
    await telemetry?.close();
  }
}

async function connectByFlags({ kubeconfig }: PageFlags, log: Logger): Promise<ApiClient> {
  return createApiClient(await processConnection(kubeconfig, process.env), {
    fieldManager: 'shale-page',
    onRequest: traceRequests(log),
  });
}
