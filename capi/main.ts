import { Command } from 'commander';
import type { Logger } from 'pino';
import { CLUSTER_API_DEPLOYMENT, DEFAULT_NAMESPACE } from '../api/names.ts';
import { type Connection, processConnection } from '../cluster/connection.ts';
import { Discovery } from '../cluster/discovery.ts';
import { createEventRecorder } from '../cluster/events.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { createLogger, traceRequests } from '../cluster/log.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { endTogether, type ProcessPart, untilShutDown, wholeNumber } from '../cluster/process.ts';
import { awaitCertificate, followCertificate } from '../cluster/serving-certificate.ts';
import { metricsPage, startTelemetry } from '../cluster/telemetry.ts';
import { LiveClusters } from './clusters/live-clusters.ts';
import { ManagementCluster } from './clusters/management.ts';
import { HOOK_REQUEST_DEADLINE_MS } from './clusters/not-known.ts';
import { WorkloadClusters } from './clusters/workload-clusters.ts';
import { UpdateHooks } from './hooks.ts';
import { LOOP_INTERVAL_MS, runLoop } from './loop.ts';
import { ExtensionMetrics } from './metrics.ts';
import { startHookServer } from './server.ts';

export interface CapiExtensionFlags extends LogFlags {
  readonly port: number;
  readonly tlsDir: string;
  readonly extensionConfig: string;
  readonly namespace: string;
  readonly metricsPort: number;
  readonly kubeconfig?: string;
}

/** `shale capi-extension`: the process of the update extension's Deployment in the management cluster. */
export function capiExtensionCommand(): Command {
  return withCapiExtensionFlags(new Command('capi-extension')).action((flags: CapiExtensionFlags) =>
    untilShutDown((signal) => runCapiExtension(flags, signal)),
  );
}

/** @returns the command with every flag of the extension. */
export function withCapiExtensionFlags(command: Command): Command {
  return withLogFlags(command)
    .description(
      "Run Cluster API's update extension: answers its hooks and updates machines in place; runs in the management cluster.",
    )
    .option('--port <port>', 'port of the hooks', wholeNumber(0, 65_535), 9443)
    .requiredOption('--tls-dir <dir>', 'directory with tls.crt and tls.key of the hooks')
    .option(
      '--extension-config <name>',
      'name of the ExtensionConfig whose settings say how machines map to MachineConfigs',
      'shale',
    )
    .option('--namespace <name>', 'namespace of Shale in the workload clusters', DEFAULT_NAMESPACE)
    .option(
      '--metrics-port <port>',
      'port for /metrics, /healthz and /readyz; 0 disables it',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--kubeconfig <file>', 'kubeconfig of the management cluster, for an extension outside of it');
}

/**
 * Answers the hooks, and keeps what it wrote in workload clusters as their owners want it, until the signal. It has no
 * state, and a replica needs to know of no other one.
 *
 * @param connect opens the connection to the management cluster; the flags say where to, unless a test says it.
 * @throws what keeps the hooks from being served, because a new process starts over.
 */
export async function runCapiExtension(
  flags: CapiExtensionFlags,
  signal: AbortSignal,
  connect: () => Promise<Connection> = () => processConnection(flags.kubeconfig, process.env),
): Promise<void> {
  const log = createLogger(CLUSTER_API_DEPLOYMENT, flags.logLevel, flags.logFormat);
  const reported = new ExtensionMetrics();
  const { parts, close } = extensionParts(flags, await connect(), { log, metrics: reported });
  let isServed = false;
  const serve = servePart(flags, parts.hooks, log, () => {
    isServed = true;
  });
  const notReady = () => (isServed ? undefined : `waiting for tls.crt and tls.key in ${flags.tlsDir}`);
  const metrics = metricsPage(reported.registry);
  const { metricsPort: port } = flags;
  const telemetry = port === 0 ? undefined : await startTelemetry({ port, metrics, notReady });
  try {
    await endTogether([serve, parts.loop], signal);
  } finally {
    close();
    await telemetry?.close();
  }
}

function extensionParts(
  flags: CapiExtensionFlags,
  connection: Connection,
  { log, metrics }: { readonly log: Logger; readonly metrics: ExtensionMetrics },
) {
  const client = createApiClient(connection, {
    fieldManager: CLUSTER_API_DEPLOYMENT,
    onRequest: traceRequests(log),
    requestDeadlineMs: HOOK_REQUEST_DEADLINE_MS,
  });
  const management = new ManagementCluster(client, new Discovery(connection));
  const workloads = new WorkloadClusters(management, flags.namespace);
  const events = createEventRecorder(client, CLUSTER_API_DEPLOYMENT, log);
  const { extensionConfig } = flags;
  const options = { management, workloads, extensionConfig, events, log, now: () => new Date() };
  const clusters = new LiveClusters(options);
  const loop: ProcessPart = (signal) =>
    runLoop({ ...options, metrics, reported: new Map(), intervalMs: LOOP_INTERVAL_MS }, signal);
  return {
    parts: { hooks: new UpdateHooks({ clusters, log, metrics }), loop },
    close: () => workloads.close(),
  };
}

/** @param onServed once the hooks are served: their certificate may come later than the process. */
function servePart(
  { port, tlsDir }: CapiExtensionFlags,
  hooks: UpdateHooks,
  log: Logger,
  onServed: () => void,
): ProcessPart {
  const files = { directory: tlsDir, of: 'the hooks', log };
  return async (signal) => {
    const inUse = await awaitCertificate(files, signal);
    const server = await startHookServer({ hooks, tls: inUse, port, log });
    log.info({ port: server.port }, 'the hooks are served');
    onServed();
    try {
      await followCertificate({ files, inUse }, server.setCertificate, signal);
    } finally {
      await server.close();
    }
  };
}
