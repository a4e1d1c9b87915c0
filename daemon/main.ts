import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Command, Option } from 'commander';
import {
  DAEMON_SET,
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  KUBELET_CA_CONFIG_MAP,
  NODE_PULL_SECRET,
} from '../api/names.ts';
import { processConnection } from '../cluster/connection.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { createLogger, traceRequests } from '../cluster/log.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { untilShutDown, wholeNumber } from '../cluster/process.ts';
import { startTracing } from '../cluster/tracing/start-tracing.ts';
import { defaultCertificatePaths } from './host/certificates/certificate-files.ts';
import type { NodePorts } from './host/host.ts';
import { HOST_INIT } from './host/systemd-host.ts';
import { systemdNode } from './host/systemd-node.ts';
import { addLimitOptions, type DaemonLimitFlags, daemonLimitsOf } from './limit-flags.ts';
import { runDaemon } from './loop.ts';
import { BACKENDS, type BackendName } from './os/os-tool.ts';
import type { ImageSource } from './os/ostree/image-source.ts';
import { registrySource } from './os/ostree/registry-source.ts';
import { pinnedImagesWork } from './pinned-images/pinned-images-loop.ts';
import type { DaemonTelemetry } from './prometheus-metrics.ts';
import type { BackgroundCommand } from './steps/background-task.ts';

/** What runs beside the steps of updates. */
const BACKGROUND_TASKS: readonly BackgroundCommand[] = [pinnedImagesWork];

export interface DaemonFlags extends DaemonLimitFlags, LogFlags {
  readonly nodeName: string;
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly hostRoot: string;
  readonly hostInit: number;
  readonly osBackend?: BackendName | undefined;
  readonly authFile?: string;
  readonly kubeletCaFile: string;
  readonly pullSecretFile: string;
  readonly insecureRegistry: readonly string[];
  readonly metricsPort: number;
  readonly kubeconfig?: string;
}

/** What the flags say of the host. */
export type HostFlags = Pick<DaemonFlags, 'hostRoot' | 'hostInit' | 'osBackend' | 'pullSecretFile'>;

/** @returns the ports of the node whose host the flags name. @param source where its images come from. */
export type OpenNode = (flags: HostFlags, source: ImageSource) => NodePorts;

/**
 * @param openNode how the daemon reaches its node: unless given, a host with systemd.
 * @returns the subcommand that runs on every node.
 */
export function daemonCommand(openNode: OpenNode = openSystemdNode): Command {
  const command = new Command('daemon').description(
    'Run the node daemon, which stages, applies, verifies and reports updates of one node. Runs as a DaemonSet.',
  );
  addClusterOptions(command);
  addHostOptions(command);
  addRegistryOptions(command);
  for (const task of BACKGROUND_TASKS) task.addOptions(command);
  addLimitOptions(command);
  return withLogFlags(command)
    .option(
      '--metrics-port <port>',
      'port of /metrics, /healthz and /readyz; 0: off',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--kubeconfig <file>', 'kubeconfig file to use instead of the service account')
    .action((flags: DaemonFlags) => untilShutDown((signal) => runWithFlags(flags, openNode, signal)));
}

/** Where its node's objects are. */
function addClusterOptions(command: Command): void {
  command
    .addOption(
      new Option('--node-name <name>', 'name of the node that the daemon runs on')
        .env('NODE_NAME')
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--namespace <name>', "namespace of Shale's objects")
        .env('POD_NAMESPACE')
        .default(DEFAULT_NAMESPACE),
    )
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE);
}

function addHostOptions(command: Command): void {
  command
    .option('--host-root <directory>', "where the host's root is mounted", '/')
    .addOption(
      new Option('--host-init <pid>', "process id of the host's init, where the host is a container")
        .argParser(wholeNumber(1))
        .default(HOST_INIT)
        .hideHelp(),
    )
    .addOption(
      new Option(
        '--os-backend <name>',
        "tool that manages the host's operating system; detected by default",
      ).choices(BACKENDS),
    );
}

/** Registries, their credentials and the certificates that the daemon writes to its node. */
function addRegistryOptions(command: Command): void {
  command
    .option('--auth-file <file>', "registry credentials; default: the node's pull secret")
    .option(
      '--kubelet-ca-file <path>',
      `path on the node of the CA from ConfigMap ${KUBELET_CA_CONFIG_MAP} (the kubelet's --client-ca-file)`,
      defaultCertificatePaths.kubeletCA,
    )
    .option(
      '--pull-secret-file <path>',
      `path on the node of the credentials from Secret ${NODE_PULL_SECRET}`,
      defaultCertificatePaths.pullSecret,
    )
    .option(
      '--insecure-registry <host>',
      'use plain HTTP for this registry (repeatable)',
      (host: string, hosts: readonly string[]) => [...hosts, host],
      [],
    );
}

/**
 * Runs a daemon as its command does, but for the signals that end a process.
 *
 * @param flags of the command line, with their defaults.
 * @returns when the signal is aborted.
 * @throws what keeps the daemon from reaching its cluster at all, such as a kubeconfig that can't be read.
 */
export async function runWithFlags(
  flags: DaemonFlags,
  openNode: OpenNode,
  signal: AbortSignal,
): Promise<void> {
  const connection = await processConnection(flags.kubeconfig, process.env);
  const log = createLogger('daemon', flags.logLevel, flags.logFormat);
  const trace = traceRequests(log);
  const telemetry = await startTelemetry(flags.metricsPort);
  const tracing = await startTracing({ service: DAEMON_SET, log, env: process.env });
  try {
    await runDaemon({
      ports: openNode(flags, imageSource(flags)),
      client: createApiClient(connection, {
        fieldManager: 'shale-daemon',
        onRequest: (request) => {
          trace(request);
          telemetry?.metrics.requested(request);
        },
      }),
      ...daemonSettings(flags),
      backgroundTasks: BACKGROUND_TASKS.map((task) => task.withFlags(flags)),
      log,
      tracer: tracing,
      ...(telemetry && { metrics: telemetry.metrics, onSynced: telemetry.synced }),
      signal,
    });
  } finally {
    await telemetry?.close();
    await tracing.close();
  }
}

/** @returns what the flags say of the daemon itself. */
export function daemonSettings(flags: DaemonFlags) {
  return {
    nodeName: flags.nodeName,
    namespace: flags.namespace,
    leaseNamespace: flags.leaseNamespace,
    certificatePaths: { kubeletCA: flags.kubeletCaFile, pullSecret: flags.pullSecretFile },
    ...daemonLimitsOf(flags),
  };
}

/** @returns the metrics and health of a daemon that is watched; for no other the client library is loaded. */
async function startTelemetry(port: number): Promise<DaemonTelemetry | undefined> {
  if (port === 0) return undefined;
  const { startDaemonTelemetry } = await import('./prometheus-metrics.ts');
  return startDaemonTelemetry(port);
}

function imageSource({
  hostRoot: root,
  authFile,
  pullSecretFile,
  insecureRegistry,
}: DaemonFlags): ImageSource {
  const file = authFile ?? path.join(root, pullSecretFile);
  return registrySource({
    root,
    readAuthFile: (signal) => readOptional(file, signal),
    plainHttp: new Set(insecureRegistry),
  });
}

function openSystemdNode(
  { hostRoot: root, hostInit: init, osBackend, pullSecretFile }: HostFlags,
  source: ImageSource,
): NodePorts {
  return systemdNode({
    root,
    source,
    init,
    pullSecretFile,
    osBackend,
  });
}

async function readOptional(file: string, signal: AbortSignal): Promise<string | undefined> {
  return readFile(file, { encoding: 'utf8', signal }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
