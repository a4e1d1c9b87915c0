import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap, Node } from '../api/kubernetes.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import {
  annotations,
  MACHINE_CONFIGURATION,
  PUSHED_IMAGES_CONFIG_MAP,
  SWITCH_CONFIG_MAP,
} from '../api/names.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import type { EventRecorder } from '../cluster/events.ts';
import type { Informer } from '../cluster/informer.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';
import { storageOverrides } from '../disruption/settings.ts';
import { inheritsStream, STREAM_PARENT } from '../machineconfig/os-image-streams.ts';
import { generatedFrom } from '../machineconfig/service-configs.ts';
import { type LayeringCaches, ownCaches } from '../opt-in/observe-layering.ts';
import type { LeftImagesParts } from '../opt-in/pushed-images/left-images-controller.ts';
import { hasMaintenanceDrain } from '../rollout/act/awaited-pods.ts';
import type { Caches } from '../rollout/caches.ts';
import type { DueRenderings } from '../rollout/due-renderings.ts';
import { nodeOfLease } from '../rollout/node-leases.ts';
import type { Membership } from '../rollout/pools/membership.ts';

export interface EventRoutes {
  readonly caches: Caches;
  readonly membership: Membership;
  readonly renderings: Pick<DueRenderings, 'mark'>;
  readonly queues: Readonly<
    Record<
      'pools' | 'finish' | 'policy' | 'certificates' | 'departed' | 'poweredOff' | 'maintenanceDrains',
      Pick<WorkQueue, 'add'>
    > &
      Record<'annotations' | 'services', Pick<WorkQueue, 'addAfter'>> &
      Record<'rendering', Pick<WorkQueue, 'add' | 'addAfter'>>
  >;
  /** See RolloutOptions, `rendering.delayMs`. */
  readonly renderDelayMs: number;
  readonly events: EventRecorder;
}

/**
 * ms. Nothing depends on MCO's annotations, and a write that cordons or uncordons a node includes them: most of the
 * time nothing is left to write by then.
 */
const ANNOTATIONS_DELAY = 2_000;

/**
 * Maps an event of each kind to keys of queues. A key is only a name: the controller reads the objects again and
 * decides what to do.
 */
export function routeEvents(routes: EventRoutes): void {
  const reportDispute = disputeReporter(routes);
  routeNodes(routes, reportDispute);
  routePools(routes, reportDispute);
  routePoolRenderings(routes);
  routeDependents(routes);
  routeServices(routes);
  routePoweredOff(routes);
  routeMaintenanceDrains(routes);
  const { caches, queues, membership } = routes;
  const everyPool = (queue: Pick<WorkQueue, 'add'>) => {
    for (const { metadata } of caches.pools.list()) queue.add(metadata.name);
  };

  /** The pools report at once that they are to be rendered. */
  const renderSoon = () => {
    for (const { metadata } of caches.pools.list()) {
      queues.rendering.addAfter(metadata.name, routes.renderDelayMs);
      queues.pools.add(metadata.name);
    }
  };
  /** What is no MachineConfig: no version in the status of a pool tells that it was seen. */
  const renderOthersSoon = () => {
    for (const { metadata } of caches.pools.list()) routes.renderings.mark(metadata.name);
    renderSoon();
  };

  caches.machineConfigs.onChange(({ object }) => {
    const pool = ownerPool(object);
    if (pool === undefined) renderSoon();
    else {
      queues.rendering.add(pool);
      queues.pools.add(pool);
    }
  });
  caches.machineConfigNodes.onChange(({ object }) => {
    const { name } = object.metadata;
    const pool = membership.wake(name);
    queues.pools.add(pool ?? object.spec.pool.name);
    if (object.spec.grant !== undefined) queues.finish.add(name);
    queues.certificates.add(name);
    queues.annotations.addAfter(name, ANNOTATIONS_DELAY);
    if (pool === undefined) queues.departed.add(name);
  });
  caches.leases.onChange(({ object }) => {
    const node = nodeOfLease(object.metadata.name);
    const pool = node === undefined ? undefined : membership.wake(node);
    if (pool !== undefined) queues.pools.add(pool);
    else if (node !== undefined) queues.departed.add(node);
    if (node === undefined) return;
    queues.annotations.addAfter(node, ANNOTATIONS_DELAY);
    // What waited for the lease.
    if (caches.machineConfigNodes.get(node) !== undefined) queues.certificates.add(node);
  });
  caches.machineConfigurations.onChange(({ object, old }) => {
    queues.policy.add(object.metadata.name);
    everyPool(queues.pools);
    // Renderings may also change spec, and own what they render.
    if (old === undefined || !isDeepStrictEqual(storageOverrides(old.spec), storageOverrides(object.spec)))
      everyPool(queues.rendering);
  });
  // It says which pools wait for their first image.
  caches.layeringSwitch.onChange(() => everyPool(queues.pools));
  caches.machineOSConfigs.onChange(({ object, old }) => {
    queues.pools.add(object.spec.machineConfigPool.name);
    const isPushedElsewhere = object.spec.renderedImagePushSpec !== old?.spec.renderedImagePushSpec;
    if (isPushedElsewhere && caches.clusterImagePolicies.list().length > 0) renderOthersSoon();
  });
  caches.poolRevisions.onChange(({ object }) => queues.pools.add(object.spec.machineConfigPool.name));
  caches.machineOSBuilds.onChange(({ object }) => queues.pools.add(object.spec.machineOSConfig.name));
  for (const cache of [caches.registryCAs, caches.kubeletCA, caches.pullSecret]) {
    cache.onChange(() => {
      for (const { metadata } of caches.machineConfigNodes.list()) queues.certificates.add(metadata.name);
    });
  }
  caches.signingKeys.onChange(() => {
    everyPool(queues.pools);
    // Whether a policy lets the images in that are signed with them.
    if (caches.clusterImagePolicies.list().length > 0) renderOthersSoon();
  });
  caches.osImageStreams.onChange(renderOthersSoon);
  caches.digestMirrors.onChange(renderOthersSoon);
  caches.tagMirrors.onChange(renderOthersSoon);
  caches.contentSources.onChange(renderOthersSoon);
  caches.imageConfigs.onChange(renderOthersSoon);
  caches.clusterImagePolicies.onChange(renderOthersSoon);
  caches.imagePolicies.onChange(renderOthersSoon);
}

/**
 * @returns what records an event about a node that several pools claim: one for each problem, whether node or pool
 * changed.
 */
function disputeReporter({ membership, events }: EventRoutes): (node: Node) => void {
  const reported = new Map<string, string>();
  return (node) => {
    const { name } = node.metadata;
    const problem = membership.disputeOf(name)?.problem;
    if (problem === undefined) reported.delete(name);
    else if (problem !== reported.get(name)) {
      reported.set(name, problem);
      events.warning(node, 'PoolConflict', problem);
    }
  };
}

function routeNodes({ caches, membership, queues }: EventRoutes, reportDispute: (node: Node) => void): void {
  caches.nodes.onChange(({ type, object, old }) => {
    const { name } = object.metadata;
    if (type === 'DELETED') {
      for (const pool of membership.removeNode(name)) queues.pools.add(pool);
      queues.departed.add(name);
      reportDispute(object);
      return;
    }
    if (!nodeChangeMatters(old, object)) return;
    const touched = [...membership.setNode(object), membership.poolOf(name)];
    for (const pool of touched) if (pool !== undefined) queues.pools.add(pool);
    // It may be Ready again, or have reported its boot.
    if (caches.machineConfigNodes.get(name)?.spec.grant !== undefined) queues.finish.add(name);
    if (membership.poolOf(name) === undefined) queues.departed.add(name);
    queues.annotations.addAfter(name, ANNOTATIONS_DELAY);
    reportDispute(object);
  });
}

function routePools({ caches, membership, queues }: EventRoutes, reportDispute: (node: Node) => void): void {
  caches.pools.onChange(({ type, object, old }) => {
    const { name } = object.metadata;
    const touched = type === 'DELETED' ? membership.removePool(name) : membership.setPool(object);
    for (const pool of new Set([name, ...touched])) queues.pools.add(pool);
    if (touched.length > 0) {
      for (const node of caches.nodes.list()) {
        const { name: member } = node.metadata;
        if (membership.poolOf(member) === undefined) queues.departed.add(member);
        reportDispute(node);
      }
    }
    if (
      type === 'DELETED' ||
      old === undefined ||
      !isDeepStrictEqual(old.metadata.labels, object.metadata.labels)
    ) {
      queues.policy.add(MACHINE_CONFIGURATION);
    }
  });
}

/** Whatever else a pool is rendered from brings every pool (routeEvents). */
function routePoolRenderings({ caches, renderings, queues, renderDelayMs }: EventRoutes): void {
  caches.pools.onChange(({ type, object, old }) => {
    if (object.metadata.name !== STREAM_PARENT) return;
    if (!asksForAnotherStream(old, type === 'DELETED' ? undefined : object)) return;
    for (const { metadata } of caches.pools.list().filter(inheritsStream)) {
      renderings.mark(metadata.name);
      queues.rendering.addAfter(metadata.name, renderDelayMs);
      queues.pools.add(metadata.name);
    }
  });
  caches.pools.onChange(({ object, old }) => {
    const { name } = object.metadata;
    if (old === undefined) {
      queues.rendering.add(name);
      return;
    }
    if (asksForAnotherStream(old, object)) renderings.mark(name);
    // Not at once: a change of its MachineConfigs may be on its way, and this pass would render a part of it.
    if (rendersAnew(old, object)) queues.rendering.addAfter(name, renderDelayMs);
  });
}

/** Pools wait for others to become Updated (spec.shale.dependsOn). */
function routeDependents({ caches, queues }: EventRoutes): void {
  caches.pools.onChange(({ object }) => {
    for (const other of caches.pools.list())
      if (settingOf(other, 'dependsOn').includes(object.metadata.name)) queues.pools.add(other.metadata.name);
  });
}

/** All KubeletConfigs and ContainerRuntimeConfigs are one key: their MachineConfigs depend on one another. */
export const SERVICES_KEY = 'service-configs';

/**
 * ms. A GitOps tool writes several of them, and a pool that is scaled up gets its nodes, one after another; each change
 * of what is generated would be a rendered config.
 */
const SERVICES_DELAY = 1_000;

function routeServices({ caches, queues }: EventRoutes): void {
  const soon = () => queues.services.addAfter(SERVICES_KEY, SERVICES_DELAY);
  caches.kubeletConfigs.onChange(soon);
  caches.containerRuntimeConfigs.onChange(soon);
  caches.machineConfigs.onChange(({ object }) => {
    if (generatedFrom(object) !== undefined) soon();
  });
  caches.pools.onChange(({ type, object, old }) => {
    if (type === 'DELETED' || old === undefined || runtimeInputs(old) !== runtimeInputs(object)) soon();
  });
  caches.nodes.onChange(({ type, object, old }) => {
    if (type === 'DELETED' || old === undefined || runtimeInputsOfNode(old) !== runtimeInputsOfNode(object))
      soon();
  });
}

/** Of all nodes, few are switched off, or have a lease that is held for that. */
function routePoweredOff({ caches, queues }: EventRoutes): void {
  caches.nodes.onChange(({ object, old }) => {
    const isMarked = (node?: Node) => node?.metadata.annotations?.[annotations.poweredOff] !== undefined;
    if (isMarked(object) || isMarked(old)) queues.poweredOff.add(object.metadata.name);
  });
  caches.leases.onChange(({ object }) => {
    const node = nodeOfLease(object.metadata.name);
    if (node !== undefined) queues.poweredOff.add(node);
  });
}

/** Of cordoned nodes; a NodeMaintenance is also found by its cordon. */
function routeMaintenanceDrains({ caches, queues }: EventRoutes): void {
  const inputs = ({ metadata, spec }: Node) =>
    JSON.stringify([spec?.unschedulable === true, metadata.annotations?.[annotations.plannedMaintenance]]);
  caches.nodes.onChange(({ object, old }) => {
    const isCordoned = object.spec?.unschedulable === true || old?.spec?.unschedulable === true;
    if (isCordoned && (old === undefined || inputs(old) !== inputs(object)))
      queues.maintenanceDrains.add(object.metadata.name);
  });
  // What an operator before has left there.
  caches.machineConfigNodes.onChange(({ object, old }) => {
    if (old === undefined && hasMaintenanceDrain(object.status))
      queues.maintenanceDrains.add(object.metadata.name);
  });
}

function runtimeInputs(pool: MachineConfigPool): string {
  const { metadata, spec } = pool;
  const { nodeSelector, machineConfigSelector } = spec;
  const stated = settingOf(pool, 'containerRuntime');
  return JSON.stringify([metadata.labels, stated, nodeSelector, machineConfigSelector]);
}

function runtimeInputsOfNode({ metadata, status }: Node): string {
  return JSON.stringify([metadata.labels, status?.nodeInfo?.containerRuntimeVersion]);
}

/** The whole of layering is one key. */
export const LAYERING_KEY = SWITCH_CONFIG_MAP;

/** ms. A rollout changes every node many times over, and few of these changes matter to layering. */
const LAYERING_DELAY = 2_000;

/** Routes what layering is decided from to its queue. */
export function routeLayeringEvents(
  caches: LayeringCaches,
  queue: Pick<WorkQueue, 'add' | 'addAfter'>,
): void {
  const now = () => queue.add(LAYERING_KEY);
  const soon = () => queue.addAfter(LAYERING_KEY, LAYERING_DELAY);
  const {
    pools,
    machineConfigNodes,
    machineConfigurations,
    machineOSConfigs,
    machineOSBuilds,
    layeringSwitch,
  } = caches.shared;
  for (const cache of ownCaches(caches)) cache.onChange(now);
  layeringSwitch.onChange(now);
  machineOSConfigs.onChange(now);
  machineOSBuilds.onChange(now);
  pools.onChange(soon);
  machineConfigurations.onChange(soon);
  machineConfigNodes.onChange(soon);
}

/** The record of pushed images is one key. */
export const LEFT_IMAGES_KEY = PUSHED_IMAGES_CONFIG_MAP;

interface LeftImagesRoutes extends Pick<LeftImagesParts, 'shared' | 'seen'> {
  readonly record: Pick<Informer<ConfigMap>, 'onChange'>;
}

/** Routes what the images of deleted MachineOSBuilds are decided from to their queue. */
export function routeLeftImagesEvents(
  { shared, record, seen }: LeftImagesRoutes,
  queue: Pick<WorkQueue, 'add' | 'addAfter'>,
): void {
  const now = () => queue.add(LEFT_IMAGES_KEY);
  const soon = () => queue.addAfter(LEFT_IMAGES_KEY, LAYERING_DELAY);
  const { machineOSBuilds, machineOSConfigs, machineConfigNodes, pools, poolRevisions } = shared;
  machineOSBuilds.onChange((change) => {
    seen.changed(change);
    now();
  });
  record.onChange(now);
  machineOSConfigs.onChange(now);
  for (const cache of [machineConfigNodes, pools, poolRevisions]) cache.onChange(soon);
}

/** The pool's own status changes with every node; only what it runs matters to what may be rendered for it. */
function rendersAnew(before: MachineConfigPool, after: MachineConfigPool): boolean {
  return (
    before.metadata.generation !== after.metadata.generation ||
    before.status?.configuration?.name !== after.status?.configuration?.name
  );
}

/** What a pool is rendered from beside its MachineConfigs, whose versions its status has. */
function asksForAnotherStream(
  before: MachineConfigPool | undefined,
  after: MachineConfigPool | undefined,
): boolean {
  return !isDeepStrictEqual(before?.spec.osImageStream, after?.spec.osImageStream);
}

function ownerPool({ metadata }: MachineConfig): string | undefined {
  return metadata.ownerReferences?.find(
    ({ kind, controller }) => kind === 'MachineConfigPool' && controller === true,
  )?.name;
}

/**
 * Whether a changed Node can make a difference to a rollout. Kubelets write heartbeats and image lists all day; with
 * thousands of nodes most events are of that kind.
 */
function nodeChangeMatters(before: Node | undefined, after: Node): boolean {
  return before === undefined || JSON.stringify(relevant(before)) !== JSON.stringify(relevant(after));
}

function relevant({ metadata, spec, status }: Node): readonly unknown[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return [
    metadata.uid,
    metadata.labels,
    metadata.annotations,
    metadata.deletionTimestamp,
    spec?.unschedulable,
    spec?.taints?.map(({ key }) => key),
    // A node that was down and is Ready again may be one event.
    [ready?.status, ready?.lastTransitionTime],
    [status?.nodeInfo?.bootID, status?.nodeInfo?.architecture],
  ];
}
