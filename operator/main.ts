import { hostname } from 'node:os';
import { Command, Option } from 'commander';
import type { Logger } from 'pino';
import { Deployments, Pods } from '../api/kubernetes.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { inClusterConnection, kubeconfigConnection } from '../cluster/connection.ts';
import { createEventRecorder } from '../cluster/events.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { leadWhenElected } from '../cluster/leader-election.ts';
import { createLogger } from '../cluster/log.ts';
import { untilShutDown } from '../cluster/signals.ts';
import { startTracing, type Tracing } from '../cluster/tracing/start-tracing.ts';
import { wholeNumber } from '../cluster/whole-number.ts';
import { runLayeringController } from '../opt-in/layering-controller.ts';
import type { PageCaches } from '../page/server/page-caches.ts';
import { type Caches, createCaches } from '../rollout/caches.ts';
import { type OperatorTelemetry, startOperatorTelemetry } from './status.ts';
import { startRolloutControllers } from './loop.ts';
import { defaultRolloutOptions, type RolloutOptions } from '../rollout/options.ts';
import { detectOtherOperator } from './preconditions.ts';
import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import { limitsOf, withLimitFlags } from './limit-flags.ts';
import { registryPruner } from './image-pruner.ts';

interface OperatorFlags {
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly containerRuntimeUnit: string;
  readonly nodeUser: string;
  readonly insecureRegistry: string[];
  readonly attest: boolean;
  readonly signingKeySecret?: string;
  readonly engine?: string;
  readonly engineTlsDir?: string;
  readonly engineImage: string;
  readonly keepImages: number;
  readonly builderMetricsPort: number;
  readonly metricsPort: number;
  readonly pagePort: number;
  readonly pageTlsDir?: string;
  readonly nodeName?: string;
  readonly stagingLimit: number;
  readonly drainGraceSeconds?: number;
  readonly drainReportMinutes: number;
  readonly drainKeepUnmanaged: boolean;
  readonly drainKeepEmptyDir: boolean;
  readonly maxFileMib?: number;
  readonly maxConfigMib?: number;
  readonly image?: string;
  readonly kubeconfig?: string;
  readonly logLevel: string;
}

const NAME = 'shale-operator';
const PODMAN_SIDECAR = 'podman-sidecar';
/** Podman's own image, which is made for running it in a container without privileges. */
const PODMAN_IMAGE = 'quay.io/podman/stable:v5';

/** `shale operator`: the process of the operator's Deployment. */
export function operatorCommand(): Command {
  const { drain } = defaultRolloutOptions;
  const command = new Command('operator')
    .description('Render pools, roll changes out, and start and stop layering; runs in the cluster.')
    .option('--namespace <name>', 'where Shale runs', process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE)
    .option('--lease-namespace <name>', 'where the leases of nodes are', DEFAULT_LEASE_NAMESPACE)
    .option(
      '--container-runtime-unit <name>',
      'the unit that default policies mean by the container runtime',
      defaultRolloutOptions.containerRuntimeUnit,
    )
    .option(
      '--node-user <name>',
      'the user whose SSH keys and password MachineConfigs may change',
      defaultRolloutOptions.nodeUser,
    )
    .option('--insecure-registry <host...>', 'registries (host:port) to speak plain HTTP to', [])
    .option('--no-attest', 'attach no provenance and no list of files to images')
    .option('--signing-key-secret <name>', 'the Secret whose cosign.key signs images')
    .option(
      '--engine <what>',
      'container engine of the builder, for what needs commands to run in an image: podman-sidecar, or the address of one; without it such images are refused',
    )
    .option(
      '--engine-tls-dir <dir>',
      "in the builder's pod: ca.pem, cert.pem and key.pem of an engine on TCP",
    )
    .option('--engine-image <pullspec>', 'image of the podman sidecar', PODMAN_IMAGE)
    .option(
      '--builder-metrics-port <port>',
      "where the builder's pod has /metrics, /healthz and /readyz; 0: nowhere",
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      '--metrics-port <port>',
      'where this process has /metrics, /healthz and /readyz; 0: nowhere',
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      '--page-port <port>',
      'where this process serves the live page, on loopback unless --page-tls-dir is set; 0: nowhere',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--page-tls-dir <dir>', 'tls.crt and tls.key of the live page, for every address of the pod')
    .addOption(
      new Option('--node-name <name>', 'the node it runs on, which is updated last of the control plane').env(
        'NODE_NAME',
      ),
    )
    .option(
      '--staging-limit <count>',
      'nodes of a pool that may bring an update to their disks at once',
      wholeNumber(1),
      defaultRolloutOptions.stagingLimit,
    )
    .option(
      '--drain-grace-seconds <seconds>',
      "time that drained pods have to end; without it each pod's own",
      wholeNumber(0),
    )
    .option(
      '--drain-report-minutes <minutes>',
      'a drain that takes longer makes its pool Degraded and is told in an event',
      wholeNumber(1),
      drain.reportAfterSeconds / 60,
    )
    .option(
      '--drain-keep-unmanaged',
      'let pods without a controller block a drain, in place of evicting them',
      false,
    )
    .option(
      '--drain-keep-empty-dir',
      'let pods with emptyDir volumes block a drain, in place of evicting them',
      false,
    )
    .option(
      '--keep-images <count>',
      'images that a pool keeps beyond those in use, to go back to',
      wholeNumber(0),
      3,
    )
    .option(
      '--image <pullspec>',
      "Shale's image, for the builder; by default the one of this process's own pod",
    )
    .option('--kubeconfig <file>', 'the cluster, where this is not one of its pods')
    .option('--log-level <level>', "pino's: debug, info, warn, error", 'info');
  return withLimitFlags(command).action((flags: OperatorFlags) =>
    untilShutDown((signal) => run(flags, signal)),
  );
}

async function run(flags: OperatorFlags, signal: AbortSignal): Promise<void> {
  const log = createLogger(NAME, flags.logLevel);
  const client = await connect(flags);
  const other = await detectOtherOperator(client, signal);
  if (other !== undefined) {
    throw new CommandError(
      `${other}: two operators would undo each other's work, so this one does not start`,
    );
  }
  const image = flags.image ?? (await ownImage(client, flags.namespace, signal));
  const { namespace } = flags;
  const telemetry = flags.metricsPort === 0 ? undefined : await startOperatorTelemetry(flags.metricsPort);
  const tracing = await startTracing({ service: NAME, log, env: process.env });
  try {
    await leadWhenElected({
      client: await connect(flags),
      lease: { namespace, name: NAME, holder: process.env['POD_NAME'] ?? `${hostname()}-${process.pid}` },
      log,
      signal,
      lead: (leading) => lead({ client, log, image, flags, telemetry, tracing, signal: leading }),
    });
  } finally {
    await telemetry?.close();
    await tracing.close();
  }
}

/** @returns a client with a pool of connections of its own. */
async function connect({ kubeconfig }: OperatorFlags): Promise<ApiClient> {
  return createApiClient(
    kubeconfig === undefined
      ? await inClusterConnection(process.env)
      : await kubeconfigConnection({ path: kubeconfig }),
  );
}

interface Leading {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly image: string;
  readonly flags: OperatorFlags;
  readonly telemetry: OperatorTelemetry | undefined;
  readonly tracing: Tracing;
  readonly signal: AbortSignal;
}

/** All controllers end together: where one can't go on, a new process begins anew. */
async function lead({ client, log, image, flags, telemetry, tracing, signal }: Leading): Promise<void> {
  const { namespace } = flags;
  const events = createEventRecorder(client, NAME, log);
  const options = rolloutOptions(flags);
  telemetry?.is('reading');
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const shared = { client, events, log, signal: either };
  const insecure = flags.insecureRegistry;
  const caches = createCaches(client, options, log);
  const page = flags.pagePort === 0 ? undefined : await preparePage(client, caches, flags, log);
  const controllers = [
    ...(page === undefined ? [] : [page(either)]),
    startRolloutControllers({
      ...shared,
      caches,
      options,
      tracer: tracing,
      ...(telemetry === undefined ? {} : { telemetry, onReady: () => telemetry.is('leading') }),
    }),
    runLayeringController({
      ...shared,
      watched: caches,
      namespace,
      image,
      pruner: registryPruner({ client, namespace, plainHttp: new Set(insecure) }),
      builderArguments: builderArguments(flags),
      keepImages: flags.keepImages,
      surroundings: {
        ...(flags.engine === PODMAN_SIDECAR ? { podmanImage: flags.engineImage } : {}),
        ...(flags.builderMetricsPort === 0 ? {} : { metricsPort: flags.builderMetricsPort }),
      },
    }),
  ];
  const outcomes = await Promise.allSettled(
    controllers.map((controller) =>
      controller.catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    ),
  );
  const broken = outcomes.find((outcome) => outcome.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
}

/**
 * Its code is loaded only where the page is served. That it can't be served keeps no rollout from going on.
 *
 * @returns what serves it until the signal.
 */
async function preparePage(
  client: ApiClient,
  caches: Caches,
  flags: OperatorFlags,
  log: Logger,
): Promise<((signal: AbortSignal) => Promise<void>) | undefined> {
  const tell = (error: unknown) => log.error({ err: error }, 'the live page is not served');
  const options = {
    port: flags.pagePort,
    leaseNamespace: flags.leaseNamespace,
    ...(flags.pageTlsDir === undefined ? {} : { tlsDir: flags.pageTlsDir }),
  };
  try {
    const { livePage } = await import('./live-page.ts');
    const serve = await livePage(client, pageCaches(caches), options, log);
    return (signal) =>
      serve(signal).catch((error: unknown) => {
        if (!signal.aborted) tell(error);
      });
  } catch (error) {
    tell(error);
    return undefined;
  }
}

/** The caches that the page is read from, and no others: it looks again whenever one of them changes. */
function pageCaches(caches: Caches): PageCaches {
  const { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations } = caches;
  return { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations };
}

function rolloutOptions(flags: OperatorFlags): RolloutOptions {
  const { drain } = defaultRolloutOptions;
  return {
    ...defaultRolloutOptions,
    namespace: flags.namespace,
    leaseNamespace: flags.leaseNamespace,
    containerRuntimeUnit: flags.containerRuntimeUnit,
    nodeUser: flags.nodeUser,
    limits: limitsOf(flags),
    stagingLimit: flags.stagingLimit,
    ...(flags.nodeName === undefined ? {} : { operatorNode: flags.nodeName }),
    drain: {
      ...drain,
      reportAfterSeconds: flags.drainReportMinutes * 60,
      evictUnmanagedPods: !flags.drainKeepUnmanaged,
      evictEmptyDirPods: !flags.drainKeepEmptyDir,
      ...(flags.drainGraceSeconds === undefined ? {} : { gracePeriodSeconds: flags.drainGraceSeconds }),
    },
  };
}

type BuilderFlags = Pick<
  OperatorFlags,
  'insecureRegistry' | 'attest' | 'signingKeySecret' | 'engine' | 'engineTlsDir' | 'builderMetricsPort'
>;

/** What the operator was told about images is for the builder to do. */
export function builderArguments({
  insecureRegistry,
  attest,
  signingKeySecret,
  engine,
  engineTlsDir,
  builderMetricsPort,
}: BuilderFlags): readonly string[] {
  return [
    ...(insecureRegistry.length === 0 ? [] : ['--insecure-registry', ...insecureRegistry]),
    ...(attest ? [] : ['--no-attest']),
    ...(signingKeySecret === undefined ? [] : ['--signing-key-secret', signingKeySecret]),
    ...(engine === undefined || engine === PODMAN_SIDECAR ? [] : ['--engine', engine]),
    ...(builderMetricsPort === 0 ? [] : ['--metrics-port', String(builderMetricsPort)]),
    ...(engineTlsDir === undefined ? [] : ['--engine-tls-dir', engineTlsDir]),
  ];
}

/** @returns the image of this process's own pod, or of the operator's Deployment. @throws CommandError. */
async function ownImage(client: ApiClient, namespace: string, signal: AbortSignal): Promise<string> {
  const podName = process.env['POD_NAME'];
  const pod = podName === undefined ? undefined : await client.find(Pods, podName, { namespace, signal });
  const deployment =
    pod === undefined ? await client.find(Deployments, NAME, { namespace, signal }) : undefined;
  const image = (pod?.spec ?? deployment?.spec.template.spec)?.containers[0]?.image;
  if (image !== undefined) return image;
  throw new CommandError(
    `can't tell which image the builder should run: there is no pod ${podName ?? '(POD_NAME is not set)'} and no Deployment ${NAME} in namespace ${namespace}; set --image`,
    exitCodes.unavailable,
  );
}
