import type { Logger } from 'pino';
import type { ApiClient } from '../cluster/api-client.ts';
import { runController } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { FailingSteps, TELL_WITHIN_MS, warnOfStep } from '../cluster/failing-steps.ts';
import { LeadershipLost } from '../cluster/leader-election.ts';
import { followLogLevel } from '../cluster/log.ts';
import { noTracer, type Tracer } from '../cluster/tracing/span.ts';
import { createWorkQueue, type WorkQueue } from '../cluster/work-queue.ts';
import { RegistryError } from '../image/registry/registry-error.ts';
import { BuildController } from './build-controller.ts';
import { BuildFailure } from './build-failure.ts';
import type { EngineAccessParts } from './engine/engine-flags.ts';
import type { BuildMetrics } from './metrics.ts';
import { createBuildCaches, enqueueOnChange } from './observe.ts';
import { LeftoverEngines, LOOK_FOR_ENGINES_MS } from './steps/leftover-engines.ts';
import { ImageMaker } from './steps/make-image.ts';
import { RunningBuilds } from './steps/running-builds.ts';

export interface BuilderOptions {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** The log's level where the MachineConfiguration requests none; absent: the one that it has. */
  readonly logLevel?: string;
  /** The namespace that Shale runs in. */
  readonly namespace: string;
  readonly plainHttp: ReadonlySet<string>;
  /** For pools whose nodes have not reported theirs; a GOARCH value. */
  readonly architecture: string;
  readonly version: string;
  readonly created: string;
  /** Whether provenance is attached to images. */
  readonly attest?: boolean;
  /** Name of the Secret with the key that signs images. */
  readonly signingKeySecret?: string | undefined;
  readonly engine: EngineAccessParts;
  /** Absent where metrics are not served. */
  readonly metrics?: BuildMetrics | undefined;
  /** Where the traces of builds go; absent: nowhere. */
  readonly tracer?: Tracer;
  /** How many images are built at once. */
  readonly parallel: number;
  readonly signal: AbortSignal;
  /** ms between look-ups of a base image named by tag. */
  readonly baseCheckMs: number;
  readonly now?: () => Date;
}

/** All leftover engines are one key. */
const ENGINES_KEY = 'leftovers';
/** MachineOSConfigs reconciled at the same time; one is never reconciled twice at once. */
const WORKERS = 4;

/**
 * Runs the Machine OS Builder until the signal: one image for each MachineOSConfig's pool and rendered config. To be
 * called by the leader only.
 *
 * @returns when its builds are stopped and marked, and its watches have ended.
 */
export async function runBuilder(options: BuilderOptions): Promise<void> {
  const { client, events, log, metrics, signal } = options;
  const now = options.now ?? (() => new Date());
  const caches = createBuildCaches(client, log, options.namespace);
  followLogLevel(caches.machineConfigurations, log, 'logLevel', options.logLevel ?? log.level);
  const queue = createWorkQueue();
  if (metrics !== undefined) metrics.queueLength = () => queue.length();
  const failing = new FailingSteps({
    now: () => now().getTime(),
    onReport: (step) => warnOfStep(events, step),
    onChange: ({ metadata }) => queue.addAfter(metadata.name, TELL_WITHIN_MS),
  });
  const maker = new ImageMaker({ ...options, caches });
  const running = new RunningBuilds({
    client,
    events,
    log,
    now,
    build: (job, step, building) => maker.make(job, step, building),
    parallel: options.parallel,
    tracer: options.tracer ?? noTracer,
    failing,
    // Not at once: the API server that could not be reached now is not reached in this moment either.
    onUnwritten: (machineOSConfig, at) => queue.addAfter(machineOSConfig, Math.max(0, at - now().getTime())),
    metrics,
  });
  enqueueOnChange(caches, queue);
  const leftovers = new LeftoverEngines({
    engines: options.engine.engines,
    machineOSConfigs: () => caches.machineOSConfigs.list(),
    failing,
  });
  const engines = createWorkQueue();
  await removeBeforeFirstBuild(leftovers, engines, options);
  const informers = Object.values(caches);
  const watching = informers.map((informer) => informer.start(signal));
  await Promise.all(informers.map((informer) => informer.synced()));
  const hasEngine = options.engine.engines.available;
  const controller = new BuildController({ ...options, caches, running, failing, hasEngine, now });
  await Promise.all([
    runController({
      name: 'builds',
      queue,
      workers: WORKERS,
      reconcile: (name) => controller.reconcile(name),
      allKeys: () => caches.machineOSConfigs.list().map(({ metadata }) => metadata.name),
      failing: {
        steps: failing,
        doing: 'keeping the build of its pool',
        objectOf: (name) => caches.machineOSConfigs.get(name),
        isReported: (error) => error instanceof RegistryError || error instanceof BuildFailure,
      },
      log,
      signal,
      fields: (name) => controller.fields(name),
    }),
    runController({
      name: 'engines',
      queue: engines,
      workers: 1,
      reconcile: (_key, stop) => leftovers.reconcile(stop),
      log,
      signal,
    }),
  ]);
  // A builder that lost the lease has lost its builds: another builder is running them.
  await (signal.reason instanceof LeadershipLost ? running.abandonAll() : running.interruptAll());
  await Promise.all(watching);
}

/** What fails is tried again, and keeps no build from starting. */
async function removeBeforeFirstBuild(
  leftovers: LeftoverEngines,
  engines: WorkQueue,
  { log, signal }: BuilderOptions,
): Promise<void> {
  try {
    await leftovers.reconcile(signal);
    engines.addAfter(ENGINES_KEY, LOOK_FOR_ENGINES_MS);
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ err: error }, 'engines of an earlier builder could not be deleted');
    engines.add(ENGINES_KEY);
  }
}
