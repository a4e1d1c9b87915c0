import type { Logger } from 'pino';
import { changeField } from '../cluster/about-change.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { runController } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { LeadershipLost } from '../cluster/leader-election.ts';
import { noTracer, type Tracer } from '../cluster/tracing/span.ts';
import { createWorkQueue, type WorkQueue } from '../cluster/work-queue.ts';
import { createMirroredClient } from '../image/registry/mirrored-client.ts';
import { noRegistriesConf } from '../image/registry/registries-conf.ts';
import { createBaseImages } from './base-images.ts';
import { buildReconciler } from './build-controller.ts';
import { type BuildMetrics, noMetrics } from './build-metrics.ts';
import type { EngineAccessParts } from './engine/engine-flags.ts';
import { type BuildCaches, createBuildCaches } from './observe.ts';
import { readRegistryAccess } from './secrets.ts';
import { imageMaker } from './steps/make-image.ts';
import { renderedRegistries } from './steps/rendered-registries.ts';
import { createRunningBuilds } from './steps/running-builds.ts';

export interface BuilderOptions {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Where Shale's own objects are. */
  readonly namespace: string;
  readonly plainHttp: ReadonlySet<string>;
  /** For pools whose nodes have not said theirs; in Go's words. */
  readonly architecture: string;
  readonly version: string;
  readonly created: string;
  /** Whether provenance is attached to images. */
  readonly attest?: boolean;
  /** Name of the Secret with the key that signs images. */
  readonly signingKeySecret?: string;
  readonly engine: EngineAccessParts;
  /** @returns what to tell metrics by; nobody watches without it. */
  readonly watch?: (queueLength: () => number) => BuildMetrics;
  /** Where builds are told as traces; absent: nowhere. */
  readonly tracer?: Tracer;
  /** How many images are made at once. */
  readonly parallel: number;
  readonly signal: AbortSignal;
  /** ms after which a base image by tag is looked at again. */
  readonly baseCheckMs: number;
  readonly now?: () => Date;
}

/** MachineOSConfigs looked at at the same time; one is never looked at twice at once. */
const WORKERS = 4;

/**
 * Runs the Machine OS Builder until the signal: one image for each MachineOSConfig's pool and rendered config. Call it
 * while leading only.
 *
 * @returns when its builds are stopped and marked, and its watches have ended.
 */
export async function runBuilder(options: BuilderOptions): Promise<void> {
  const { client, events, log, signal } = options;
  const now = options.now ?? (() => new Date());
  const caches = createBuildCaches(client, log);
  const queue = createWorkQueue();
  const running = createRunningBuilds({
    client,
    events,
    log,
    now,
    build: imageMaker({ ...options, caches }),
    parallel: options.parallel,
    metrics: options.watch?.(() => queue.length()) ?? noMetrics,
    tracer: options.tracer ?? noTracer,
  });
  routeEvents(caches, queue);
  const informers = Object.values(caches);
  const watching = informers.map((informer) => informer.start(signal));
  await Promise.all(informers.map((informer) => informer.synced()));
  const bases = createBaseImages({
    freshMs: options.baseCheckMs,
    now: () => performance.now(),
    onStale: (image, error) => log.warn({ image, err: error }, 'base image could not be looked up again'),
  });
  const reconcile = buildReconciler({
    client,
    caches,
    running,
    events,
    log,
    now,
    baseCheckMs: options.baseCheckMs,
    ownArchitecture: options.architecture,
    resolveBase: ({ spec }, requested) =>
      bases.resolve(requested, async (reference) => {
        const access = await readRegistryAccess(options, [spec.baseImagePullSecret?.name], signal);
        const rendered = renderedFor(caches, spec.machineConfigPool.name);
        const conf = rendered === undefined ? noRegistriesConf : renderedRegistries(rendered);
        return (await createMirroredClient(access, { conf }).getManifest(reference, signal)).digest;
      }),
  });
  const fields = (name: string) => {
    const pool = caches.machineOSConfigs.get(name)?.spec.machineConfigPool.name ?? '';
    return changeField(caches.pools.get(pool)?.spec.configuration?.name);
  };
  await runController({ name: 'builds', queue, workers: WORKERS, reconcile, log, signal, fields });
  // Whoever lost the lease has lost its builds with it: another builder is at work on them.
  await running.stopAll(!(signal.reason instanceof LeadershipLost));
  await Promise.all(watching);
}

function renderedFor({ pools, machineConfigs }: BuildCaches, pool: string) {
  return machineConfigs.get(pools.get(pool)?.spec.configuration?.name ?? '');
}

/** What changed, in terms of the MachineOSConfigs that it is of interest to. */
function routeEvents(caches: BuildCaches, queue: WorkQueue): void {
  const addWhere = (isFor: (config: ReturnType<typeof caches.machineOSConfigs.list>[number]) => boolean) => {
    for (const config of caches.machineOSConfigs.list().filter(isFor)) queue.add(config.metadata.name);
  };
  caches.machineOSConfigs.onChange(({ object }) => queue.add(object.metadata.name));
  caches.builds.onChange(({ object }) => queue.add(object.spec.machineOSConfig.name));
  caches.pools.onChange(({ object }) =>
    addWhere(({ spec }) => spec.machineConfigPool.name === object.metadata.name),
  );
  caches.machineConfigs.onChange(({ object }) =>
    addWhere(({ spec }) => {
      const pool = caches.pools.get(spec.machineConfigPool.name);
      return pool?.spec.configuration?.name === object.metadata.name;
    }),
  );
  caches.machineConfigurations.onChange(() => addWhere(() => true));
}
