import { hostname } from 'node:os';
import { Command } from 'commander';
import type { Logger } from 'pino';
import { SHALE_VERSION } from '../api/names.ts';
import { present } from '../api/present.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { inClusterConnection, kubeconfigConnection } from '../cluster/connection.ts';
import { createEventRecorder } from '../cluster/events.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { leadWhenElected } from '../cluster/leader-election.ts';
import { systemClocks } from '../cluster/lease-expiry.ts';
import { followLogLevel, traceRequests } from '../cluster/log-level.ts';
import { Notifier, notifying } from '../cluster/notifications.ts';
import { createLogger, untilShutDown } from '../cluster/process.ts';
import type { Tracing } from '../cluster/tracing/otlp.ts';
import { startTracing } from '../cluster/tracing/start-tracing.ts';
import { untilAnswered } from '../cluster/until-answered.ts';
import { builderDeployment } from '../opt-in/builder-deployment.ts';
import type { Signing } from '../opt-in/signing-keys.ts';
import type { PageCaches } from '../page/server/page-caches.ts';
import { type Caches, createCaches } from '../rollout/caches.ts';
import {
  alertSource,
  builderArguments,
  type OperatorFlags,
  receiverOf,
  rolloutOptions,
  withOperatorFlags,
} from './flags.ts';
import { startLayeringController, startRolloutControllers } from './loop.ts';
import {
  detectOtherOperator,
  OPERATOR_DEPLOYMENT,
  type OwnPod,
  ownPod,
  StartupError,
} from './preconditions.ts';
import { registryLabels, registryPruner } from './registry.ts';
import { signingKeyStore } from './signing-key-secret.ts';
import { type OperatorTelemetry, startOperatorTelemetry } from './status.ts';

const NAME = OPERATOR_DEPLOYMENT;

/** `shale operator`: the process of the operator's Deployment. */
export function operatorCommand(): Command {
  const command = new Command('operator').description(
    'Render pools, roll changes out, and start and stop layering; runs in the cluster.',
  );
  return withOperatorFlags(command).action((flags: OperatorFlags) =>
    untilShutDown((signal) => runOperator(flags, signal)),
  );
}

/**
 * Runs the operator until the signal: it waits until it leads, and works while it does. An API server that is away ends
 * neither: it starts, or leads again, once there is an answer.
 *
 * @throws {StartupError} when it must not or can't start; what made a controller fail, because a new process starts over.
 */
export async function runOperator(flags: OperatorFlags, signal: AbortSignal): Promise<void> {
  const log = createLogger(NAME, flags.logLevel);
  // Before it leads: a replica that takes over must not fail for it.
  receiverOf(flags);
  const client = await connect(flags, log);
  const ask = <T>(question: () => Promise<T>) => untilAnswered(question, { log, signal });
  const other = await ask(() => detectOtherOperator(client, signal));
  if (other !== undefined) {
    throw new StartupError(
      'refused',
      `${other}: two operators would undo each other's work, so this one does not start`,
    );
  }
  const own =
    flags.image === undefined
      ? await ask(() => ownPod(client, flags.namespace, signal))
      : { image: flags.image, imagePullSecrets: [] };
  const { namespace } = flags;
  const telemetry = flags.metricsPort === 0 ? undefined : await startOperatorTelemetry(flags.metricsPort);
  const tracing = await startTracing({ service: NAME, log, env: process.env });
  try {
    await leadWhenElected({
      client: await connect(flags, log),
      lease: {
        namespace,
        name: NAME,
        holder: process.env['POD_NAME'] ?? `${hostname()}-${process.pid}`,
        version: SHALE_VERSION,
      },
      log,
      signal,
      ...(flags.pagePort === 0
        ? {}
        : { wait: (waiting: AbortSignal) => servePageWhileWaiting(client, flags, log, waiting) }),
      lead: (leading) =>
        lead({ client, log, own, flags, telemetry, tracing, signal: leading }).finally(() =>
          telemetry?.is('candidate'),
        ),
    });
  } finally {
    await telemetry?.close();
    await tracing.close();
  }
}

/** @returns a client with a pool of connections of its own. */
async function connect({ kubeconfig }: OperatorFlags, log: Logger): Promise<ApiClient> {
  return createApiClient(
    kubeconfig === undefined
      ? await inClusterConnection(process.env)
      : await kubeconfigConnection({ path: kubeconfig }),
    { fieldManager: 'shale-operator', onRequest: traceRequests(log) },
  );
}

interface Leading {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly own: OwnPod;
  readonly flags: OperatorFlags;
  readonly telemetry: OperatorTelemetry | undefined;
  readonly tracing: Tracing;
  readonly signal: AbortSignal;
}

/** All controllers end together: where one can't continue, a new process starts over. */
async function lead({ client, log, own, flags, telemetry, tracing, signal }: Leading): Promise<void> {
  const { namespace } = flags;
  const recorder = createEventRecorder(client, NAME, log);
  const notifier = notifierOf(flags, log, telemetry);
  const events = notifier === undefined ? recorder : notifying(recorder, notifier);
  const options = rolloutOptions(flags);
  telemetry?.is('reading');
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const shared = { client, events, log, signal: either };
  const caches = createCaches(client, options, log);
  followLogLevel(caches.machineConfigurations, log, 'operatorLogLevel', flags.logLevel);
  const registry = { client, namespace, plainHttp: new Set(flags.insecureRegistry) };
  const page = flags.pagePort === 0 ? undefined : await preparePage(client, pageCaches(caches), flags, log);
  const { image, imagePullSecrets } = own;
  const builder = (signing: Signing) =>
    builderDeployment(namespace, image, builderArguments(flags, signing, image), {
      imagePullSecrets,
      ...present({ pod: flags.builderPod }),
      ...(flags.builderMetricsPort === 0 ? {} : { metricsPort: flags.builderMetricsPort }),
    });
  const controllers = [
    ...(page === undefined ? [] : [page(either)]),
    ...(notifier === undefined ? [] : [notifier.run(either)]),
    startRolloutControllers({
      ...shared,
      caches,
      options,
      readImageLabels: registryLabels(registry),
      tracer: tracing,
      onReady: () => telemetry?.is('leading'),
      ...present({ telemetry, askAlerts: alertSource(flags) }),
    }),
    startLayeringController({
      ...shared,
      caches,
      layering: {
        namespace,
        pruner: registryPruner(registry),
        signingKey: signingKeyStore(client, { namespace, name: flags.signingKeySecret }),
        desiredBuilder: { required: builder('required'), disabled: builder('disabled') },
        keepImages: flags.keepImages,
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

/** @returns what sends events to a receiver; undefined without one. */
function notifierOf(
  flags: OperatorFlags,
  log: Logger,
  telemetry: OperatorTelemetry | undefined,
): Notifier | undefined {
  const url = receiverOf(flags);
  if (url === undefined) return undefined;
  return new Notifier({
    ...{ url, source: flags.notifySource, typePrefix: 'dev.shale.operator', log },
    onResult: (result) => telemetry?.metrics.countNotification(result),
    now: systemClocks.now,
  });
}

/**
 * Loads the page's code only where the page is served. If the page can't be served, rollouts continue.
 *
 * @returns what serves it until the signal.
 */
async function preparePage(
  client: ApiClient,
  caches: PageCaches,
  flags: OperatorFlags,
  log: Logger,
): Promise<((signal: AbortSignal) => Promise<void>) | undefined> {
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
async function servePageWhileWaiting(
  client: ApiClient,
  flags: OperatorFlags,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { createPageCaches } = await import('../page/server/page-caches.ts');
  const { caches, start } = createPageCaches(client, flags.leaseNamespace, log);
  const serve = await preparePage(client, caches, flags, log);
  if (serve === undefined) return;
  await Promise.all([start(signal), serve(signal)]);
}

/** The caches that the page reads, and no others: it is refreshed whenever one of them changes. */
function pageCaches(caches: Caches): PageCaches {
  const { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations } = caches;
  return { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations };
}
