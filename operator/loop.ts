import type { Logger } from 'pino';
import { SIGNING_DISABLED, signingKeysVersion } from '../api/image-signing.ts';
import { ConfigMaps } from '../api/kubernetes.ts';
import { MACHINE_CONFIGURATION, PUSHED_IMAGES_CONFIG_MAP } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { type ControllerOptions, runController } from '../cluster/controller.ts';
import { changeField, type EventRecorder } from '../cluster/events.ts';
import { FailingSteps, TELL_WITHIN_MS, warnOfStep } from '../cluster/failing-steps.ts';
import { createInformer } from '../cluster/informer.ts';
import { systemClocks } from '../cluster/lease-expiry.ts';
import { noTracer, type Tracer } from '../cluster/tracing/span.ts';
import { createWorkQueue } from '../cluster/work-queue.ts';
import { LayeringController, type LayeringControllerParts } from '../opt-in/layering-controller.ts';
import { createLayeringCaches, ownCaches } from '../opt-in/observe-layering.ts';
import {
  LeftImagesController,
  type LeftImagesParts,
} from '../opt-in/pushed-images/left-images-controller.ts';
import { SeenBuilds } from '../opt-in/pushed-images/seen-builds.ts';
import { switchCoverage } from '../opt-in/switch-coverage.ts';
import { ALL_LANES } from '../rollout/act/carry-out.ts';
import { PoolRecorder } from '../rollout/act/keep-record.ts';
import { Lanes } from '../rollout/act/lanes.ts';
import { MachineRemediation } from '../rollout/act/machine-remediation.ts';
import { NodeWork } from '../rollout/act/node-work.ts';
import { allCaches, type Caches } from '../rollout/caches.ts';
import { AnnotationsController } from '../rollout/controllers/annotations-controller.ts';
import { CertificatesController } from '../rollout/controllers/certificates-controller.ts';
import { DepartedNodesController } from '../rollout/controllers/departed-nodes.ts';
import { FinishController } from '../rollout/controllers/finish-controller.ts';
import { MaintenanceDrainsController } from '../rollout/controllers/maintenance-drains-controller.ts';
import { PolicyController } from '../rollout/controllers/policy-controller.ts';
import { PoolController } from '../rollout/controllers/pool-controller.ts';
import { PoweredOffController } from '../rollout/controllers/powered-off-controller.ts';
import {
  RenderingController,
  type RenderingControllerParts,
} from '../rollout/controllers/rendering-controller.ts';
import { ServiceConfigController } from '../rollout/controllers/service-config-controller.ts';
import { DueRenderings } from '../rollout/due-renderings.ts';
import { needsSlot } from '../rollout/fleet-lock/needs-slot.ts';
import { type FleetLockServers, fleetLockServers } from '../rollout/fleet-lock/servers.ts';
import { FLEETLOCK_KEY, FleetLockSlots } from '../rollout/fleet-lock/slots.ts';
import { type Monitoring, type MonitoringLookups, monitoringLookups } from '../rollout/monitoring/lookup.ts';
import { MachineLookup, MaintenanceLookup } from '../rollout/node-claims.ts';
import type { NodeFeature } from '../rollout/node-feature.ts';
import { NodeLeases, poweredOffLeases } from '../rollout/node-leases.ts';
import type { RolloutOptions } from '../rollout/options.ts';
import { pinnedImagesFeature } from '../rollout/pinned-images/feature.ts';
import type { ProveImage } from '../rollout/pools/image-proof.ts';
import { Membership } from '../rollout/pools/membership.ts';
import { type ControllerName, controllerTable, featureEntry } from './controllers.ts';
import { failingStepsOf, layeringStep, leftImagesStep } from './failing-steps.ts';
import {
  LAYERING_KEY,
  LEFT_IMAGES_KEY,
  routeEvents,
  routeLayeringEvents,
  routeLeftImagesEvents,
} from './route-events.ts';
import type { OperatorTelemetry } from './status.ts';

export interface RolloutParts {
  readonly client: ApiClient;
  /** Created by createCaches, not started yet. Other readers of a cache add their handlers before this call. */
  readonly caches: Caches;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly options: RolloutOptions;
  readonly proveImage: ProveImage;
  /** Absent: pools that name alerts or queries wait. */
  readonly monitoring?: Monitoring;
  /** Absent: pools that name a lock service wait. */
  readonly fleetLock?: FleetLockServers;
  readonly signal: AbortSignal;
  /** Called when the caches are synced and work starts. */
  readonly onReady?: () => void;
  /** Metrics of this process; absent in an operator without metrics. */
  readonly telemetry?: Pick<OperatorTelemetry, 'metrics' | 'watch'> | undefined;
  /** Records changes as traces; absent: none are recorded. */
  readonly tracer?: Tracer;
  /** ms since the epoch; the clock, unless a test brings its own. */
  readonly now?: () => number;
}

export interface LayeringParts extends Pick<RolloutParts, 'client' | 'caches' | 'events' | 'log' | 'signal'> {
  readonly layering: Pick<
    LayeringControllerParts,
    'namespace' | 'pruner' | 'signing' | 'desiredBuilder' | 'keepImages'
  > & { readonly leftImages: LeftImagesParts['pruner'] };
}

/**
 * Runs the controllers of rollout/ until the signal: pools and their nodes, rendering, disruption policies,
 * certificates, annotations. Call it while leading only.
 *
 * @returns once every controller and every watch has ended.
 */
export async function startRolloutControllers(parts: RolloutParts): Promise<void> {
  const { caches, events, log, options, signal, telemetry } = parts;
  const membership = new Membership();
  const renderings = new DueRenderings();
  const table = controllerTable({ caches, membership, namespace: options.namespace });
  const names = Object.keys(table) as ControllerName[];
  const queues = Object.fromEntries(names.map((name) => [name, createWorkQueue()])) as Queues;
  const onRendered = (pool: string) => queues.pools.add(pool);
  const { monotonic } = systemClocks;
  const lookups = monitoringLookups(parts.monitoring ?? {}, {
    onAnswer: onRendered,
    log,
    signal,
    now: monotonic,
  });
  const now = parts.now ?? systemClocks.now;
  const failing = failingStepsOf({ caches, membership, queues, events, now });
  const onSlotAsked = () => queues.fleetLock.add(FLEETLOCK_KEY);
  const { controllers, features } = createControllers(
    { ...parts, renderings, lookups, onRendered, onSlotAsked, failing },
    membership,
  );
  const running = [
    ...names.map((name) => ({
      name,
      entry: table[name],
      queue: queues[name],
      controller: controllers[name],
    })),
    ...features.map((feature) => {
      const queue = createWorkQueue();
      feature.route(queue);
      return { name: feature.name, entry: featureEntry(feature, { caches }), queue, controller: feature };
    }),
  ];
  telemetry?.watch(() => new Map(running.map(({ name, queue }) => [name, queue.length()])));
  let isSynced = false;
  // What is read at the start is nothing new: a pool that is Ready stays so.
  const mark = (pool: string) => {
    if (isSynced) renderings.mark(pool);
  };
  routeEvents({
    caches,
    membership,
    renderings: { mark },
    queues,
    events,
    renderDelayMs: options.rendering.delayMs,
  });
  caches.signingKeys.onChange(({ type, object }) => {
    const published = type === 'DELETED' ? undefined : signingKeysVersion(object.data ?? {});
    telemetry?.metrics.setSigningDisabled(published === SIGNING_DISABLED);
  });
  queues.policy.add(MACHINE_CONFIGURATION);
  queues.fleetLock.add(FLEETLOCK_KEY);

  const watches = [...allCaches(caches), ...features.flatMap((feature) => feature.watches)];
  const watching = watches.map((watch) => watch.start(signal));
  await Promise.all(watches.map((watch) => watch.synced()));
  isSynced = true;
  const changeOfPool = (name: string) => changeField(caches.pools.get(name)?.spec.configuration?.name);
  if (!signal.aborted) parts.onReady?.();
  const working = running.map(({ name, entry, queue, controller }) => {
    const { workers, allKeys, ...step } = entry;
    return runController({
      name,
      workers,
      allKeys,
      queue,
      reconcile: (key, stop) => controller.reconcile(key, stop),
      failing: { ...step, steps: failing },
      log,
      signal,
      onPass: (pass) => telemetry?.metrics.observePass(name, pass),
      ...(name === 'pools' || name === 'rendering' ? { fields: changeOfPool } : {}),
    });
  });
  await Promise.all([...watching, ...working]);
}

type Queues = Record<ControllerName, ReturnType<typeof createWorkQueue>>;
type Controller = { readonly reconcile: ControllerOptions['reconcile'] };

function createControllers(
  parts: RolloutParts &
    Pick<RenderingControllerParts, 'renderings' | 'onRendered'> & {
      readonly lookups: MonitoringLookups;
      readonly failing: FailingSteps;
      readonly onSlotAsked: () => void;
    },
  membership: Membership,
): { readonly controllers: Record<ControllerName, Controller>; readonly features: readonly NodeFeature[] } {
  const { client, caches, options } = parts;
  const now = parts.now ?? systemClocks.now;
  const clocks = { now, monotonic: parts.now ?? systemClocks.monotonic };
  const shared = { ...parts, metrics: parts.telemetry?.metrics, tracer: parts.tracer ?? noTracer, now };
  const leasing = { client, cache: caches.leases, options: options.leases, clocks };
  const leases = new NodeLeases(leasing);
  const machines = new MachineLookup(client, now);
  const maintenances = new MaintenanceLookup(client, now);
  const hands = { leases, machines, maintenances };
  const slots = new FleetLockSlots({
    client,
    namespace: options.namespace,
    log: parts.log,
    signal: parts.signal,
    servers: parts.fleetLock ?? fleetLockServers([], {}),
    needsSlot: (node) =>
      needsSlot({
        node: caches.nodes.get(node),
        machineConfigNode: caches.machineConfigNodes.get(node),
        lease: leases.holding(node),
      }),
    onAnswer: parts.onRendered,
    onAsked: parts.onSlotAsked,
    now: clocks.monotonic,
  });
  const remediation = new MachineRemediation(shared);
  const work = new NodeWork({ ...shared, leases, machines, remediation });
  const lanes = new Lanes(ALL_LANES);
  const recorder = new PoolRecorder({ ...shared, onProof: parts.onRendered });
  const coverageOf = switchCoverage(caches.layeringSwitch, options.namespace);
  const features = [pinnedImagesFeature({ ...shared, ...hands })];
  const controllers = {
    pools: new PoolController({
      ...shared,
      ...hands,
      slots,
      coverageOf,
      membership,
      work,
      lanes,
      recorder,
      statusParts: features.map(({ statusPart }) => statusPart),
    }),
    finish: new FinishController({ ...shared, ...hands, membership, work, lanes }),
    rendering: new RenderingController(shared),
    services: new ServiceConfigController(shared),
    policy: new PolicyController(shared),
    certificates: new CertificatesController({ ...shared, ...hands }),
    annotations: new AnnotationsController({ ...shared, leases }),
    departed: new DepartedNodesController({ ...shared, ...hands, membership, leases, work, remediation }),
    poweredOff: new PoweredOffController({ caches, leases: poweredOffLeases(leasing) }),
    maintenanceDrains: new MaintenanceDrainsController({ ...shared, ...hands }),
    fleetLock: slots,
  };
  return { controllers, features };
}

/**
 * Runs the controllers of layering until the signal: the switch, and the images of MachineOSBuilds that somebody
 * deletes. Their shared caches are started by {@link startRolloutControllers}.
 *
 * @returns once the controllers and the watches of their own have ended.
 */
export async function startLayeringController(parts: LayeringParts): Promise<void> {
  const { client, events, log, signal, layering } = parts;
  const { namespace } = layering;
  const caches = createLayeringCaches(client, parts.caches, namespace, log);
  const fieldSelector = `metadata.name=${PUSHED_IMAGES_CONFIG_MAP}`;
  const record = createInformer(client, ConfigMaps, { namespace, fieldSelector, log });
  const [queue, leftImages] = [createWorkQueue(), createWorkQueue()];
  const seen = new SeenBuilds();
  routeLayeringEvents(caches, queue);
  routeLeftImagesEvents({ shared: caches.shared, record, seen }, leftImages);
  const own = [...ownCaches(caches), record];
  const watching = own.map((cache) => cache.start(signal));
  await Promise.all([...own, ...Object.values(caches.shared)].map((cache) => cache.synced()));
  queue.add(LAYERING_KEY);
  leftImages.add(LEFT_IMAGES_KEY);
  const { now } = systemClocks;
  const failing = new FailingSteps({
    now,
    onReport: (step) => warnOfStep(events, step),
    onChange: () => queue.addAfter(LAYERING_KEY, TELL_WITHIN_MS),
  });
  const controller = new LayeringController({ ...parts, ...layering, caches, seen, failing, now });
  const ofImages = new LeftImagesController({
    client,
    events,
    log,
    namespace,
    record,
    seen,
    shared: caches.shared,
    pruner: layering.leftImages,
  });
  const shared = { workers: 1, log, signal };
  await Promise.all([
    ...watching,
    runController({
      ...shared,
      name: 'layering',
      queue,
      reconcile: (key, stop) => controller.reconcile(key, stop),
      allKeys: () => [LAYERING_KEY],
      failing: { ...layeringStep(namespace), steps: failing },
    }),
    runController({
      ...shared,
      name: 'leftImages',
      queue: leftImages,
      reconcile: (key, stop) => ofImages.reconcile(key, stop),
      allKeys: () => [LEFT_IMAGES_KEY],
      failing: { ...leftImagesStep(namespace), steps: failing },
    }),
  ]);
}
