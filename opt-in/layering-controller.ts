import type { Logger } from 'pino';
import { type ConfigMap, ConfigMaps, type Deployment, Deployments, Pods } from '../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT, MACHINE_CONFIGURATION, SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { Kind, KubernetesObject, NewObject } from '../api/object.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { type ApiClient, isAlreadyExists } from '../cluster/api-client.ts';
import { done, type Result, requeueAfter, runController } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { createInformer, type Informer } from '../cluster/informer.ts';
import { updateStatus } from '../cluster/update-status.ts';
import { createWorkQueue } from '../cluster/work-queue.ts';
import { type BuilderSurroundings, builderDeployment, builderPodLabels } from './builder-deployment.ts';
import { type BuilderRight, builderRights, type ObservedRight, type RightChange } from './builder-rights.ts';
import { decideLayering, type LayeringObservation, type LayeringStep } from './decide-layering.ts';
import type { PrunedBuild } from './decide-prune.ts';
import type { MachineOSConfigChanges } from './machine-os-configs.ts';
import { formatProblems, readSwitch, type SwitchState, withLayeringCondition } from './switch.ts';

/** Deletes an image from its registry. This room knows no registries: the operator's main brings the real one. */
export interface ImagePruner {
  /** @returns when the image is gone, or was gone already. @throws Error that says why it could not be deleted. */
  deleteImage(image: DigestedPullspec, build: MachineOSBuild, signal: AbortSignal): Promise<void>;
}

type Watched<T extends KubernetesObject> = Pick<Informer<T>, 'list' | 'onChange' | 'synced'>;

export interface LayeringOptions {
  readonly client: ApiClient;
  /** Kept up to date by whoever else of this process needs them: nodes are many. */
  readonly watched: {
    readonly pools: Watched<MachineConfigPool>;
    readonly machineConfigNodes: Watched<MachineConfigNode>;
    readonly machineConfigurations: Watched<MachineConfiguration>;
    readonly machineOSConfigs: Watched<MachineOSConfig>;
    readonly machineOSBuilds: Watched<MachineOSBuild>;
  };
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly pruner: ImagePruner;
  readonly namespace: string;
  /** The image that the builder's Deployment runs: the operator's own. */
  readonly image: string;
  /** Arguments of the builder beyond its name. */
  readonly builderArguments: readonly string[];
  readonly surroundings: BuilderSurroundings;
  /** How many finished builds a pool keeps beyond what is used. */
  readonly keepImages: number;
  readonly signal: AbortSignal;
}

/** The whole of layering is one thing to look at. */
const KEY = SWITCH_CONFIG_MAP;
/** How soon a builder that is stopping, or nodes on their way back, are looked at again if no event says so first. */
const WAIT_MS = 2_000;
/** A rollout changes every node many times over, and what is to be done about layering hangs on few of these changes. */
const ROLLOUT_DELAY_MS = 2_000;
/** Steps of one pass; each ends with another observation, so a pass that needs more goes on in the next. */
const STEPS_OF_A_PASS = 8;

/**
 * Keeps layering as the switch and the MachineOSConfigs say, until the signal.
 *
 * @returns when the controller and its watches have ended.
 */
export async function runLayeringController(options: LayeringOptions): Promise<void> {
  const { client, log, namespace, signal } = options;
  const configMaps = createInformer(client, ConfigMaps, {
    namespace,
    fieldSelector: `metadata.name=${SWITCH_CONFIG_MAP}`,
    log,
  });
  const deployments = createInformer(client, Deployments, { namespace, log });
  const rights = builderRights(namespace);
  const watchedRights = rights.map((right) => ({
    right,
    informer: createInformer(client, right.kind, {
      ...placeOf(right.kind, namespace),
      fieldSelector: `metadata.name=${BUILDER_DEPLOYMENT}`,
      log,
    }),
  }));
  const { pools, machineConfigNodes: nodes, machineOSConfigs, machineOSBuilds: builds } = options.watched;
  const { machineConfigurations } = options.watched;
  const queue = createWorkQueue();
  const now = () => queue.add(KEY);
  const soon = () => queue.addAfter(KEY, ROLLOUT_DELAY_MS);
  const own = [configMaps, deployments, ...watchedRights.map(({ informer }) => informer)];
  for (const informer of own) informer.onChange(now);
  machineOSConfigs.onChange(now);
  builds.onChange(now);
  pools.onChange(soon);
  machineConfigurations.onChange(soon);
  nodes.onChange(soon);
  const watching = own.map((informer) => informer.start(signal));
  await Promise.all(
    [...own, pools, nodes, machineConfigurations, machineOSConfigs, builds].map((informer) =>
      informer.synced(),
    ),
  );
  queue.add(KEY);

  const wantedBuilder = builderDeployment(
    namespace,
    options.image,
    options.builderArguments,
    options.surroundings,
  );

  async function announce(configMap: ConfigMap | undefined): Promise<SwitchState> {
    const state = readSwitch(configMap);
    if (state.kind === 'invalid' && configMap !== undefined)
      options.events.warning(configMap, 'InvalidSwitch', formatProblems(state.problems));
    await tell(options, state);
    return state;
  }

  /**
   * What the caches show. Most changes of nodes and pools ask for nothing here, and this says so without a request.
   * The builder's pods are not watched: they matter only while something else of it is left.
   */
  async function recall(): Promise<LayeringObservation> {
    return {
      state: await announce(configMaps.get(SWITCH_CONFIG_MAP, namespace)),
      pools: pools.list(),
      machineOSConfigs: machineOSConfigs.list(),
      builds: builds.list(),
      nodes: nodes.list(),
      builder: deployments.get(BUILDER_DEPLOYMENT, namespace),
      wantedBuilder,
      rights: watchedRights.map(({ right, informer }) => ({
        ...right,
        present: informer.get(BUILDER_DEPLOYMENT, placeOf(right.kind, namespace).namespace),
      })),
      keepImages: options.keepImages,
      builderPods: 0,
    };
  }

  /**
   * Reads what decides from the API itself: right after a step the caches still show what was before it. Nodes are many
   * and are asked for only when something is about to be deleted.
   */
  async function observe(
    listNodes: () => Promise<readonly MachineConfigNode[]>,
  ): Promise<LayeringObservation> {
    const labelSelector = Object.entries(builderPodLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
    const [configMap, builder, pods, wishes, present, observedRights] = await Promise.all([
      client.find(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal }),
      client.find(Deployments, BUILDER_DEPLOYMENT, { namespace, signal }),
      client.list(Pods, { namespace, labelSelector, signal }),
      client.list(MachineOSConfigs, { signal }),
      client.list(MachineOSBuilds, { signal }),
      Promise.all(rights.map((right) => observeRight(right, options))),
    ]);
    return {
      state: await announce(configMap),
      pools: pools.list(),
      machineOSConfigs: wishes.items,
      builds: present.items,
      nodes: await listNodes(),
      builder,
      wantedBuilder,
      rights: observedRights,
      keepImages: options.keepImages,
      builderPods: pods.items.length,
    };
  }

  async function reconcile(): Promise<Result> {
    if (decideLayering(await recall()).kind === 'settled') return done;
    for (let step = 0; step < STEPS_OF_A_PASS; step += 1) {
      let next = decideLayering(await observe(async () => nodes.list()));
      if (next.kind === 'prune') {
        const live = async () => (await client.list(MachineConfigNodes, { signal })).items;
        next = decideLayering(await observe(live));
      }
      if (next.kind === 'settled') return done;
      if (next.kind === 'wait') {
        log.info({ why: next.why }, 'layering waits');
        return requeueAfter(WAIT_MS);
      }
      await take(next, options, wantedBuilder);
    }
    return requeueAfter(0);
  }

  await runController({ name: 'layering', queue, workers: 1, reconcile, log, signal });
  await Promise.all(watching);
}

/** The MachineConfiguration is the operator's status; until the operator has made it there is nowhere to tell it. */
async function tell({ client, watched, signal }: LayeringOptions, state: SwitchState): Promise<void> {
  const configuration = watched.machineConfigurations
    .list()
    .find(({ metadata }) => metadata.name === MACHINE_CONFIGURATION);
  if (configuration === undefined) return;
  await updateStatus(
    client,
    MachineConfigurations,
    configuration,
    ({ status }) => {
      const before = status?.conditions ?? [];
      const conditions = withLayeringCondition(before, state, new Date());
      // A status that nobody has written yet is not for this to begin.
      return before.length + conditions.length === 0 ? status : { ...status, conditions };
    },
    { signal },
  );
}

async function take(
  step: Exclude<LayeringStep, { kind: 'settled' | 'wait' }>,
  options: LayeringOptions,
  wantedBuilder: NewObject<Deployment>,
): Promise<void> {
  const { client, log, namespace, signal } = options;
  switch (step.kind) {
    case 'startBuilder':
      log.info({ deployment: BUILDER_DEPLOYMENT }, 'starting the Machine OS Builder');
      await unlessThere(client.create(Deployments, wantedBuilder, { namespace, signal }));
      return;
    case 'updateBuilder': {
      log.info({ deployment: BUILDER_DEPLOYMENT }, 'updating the Machine OS Builder');
      const { replicas, template } = wantedBuilder.spec;
      const body = { spec: { replicas, template } };
      await client.patch(Deployments, BUILDER_DEPLOYMENT, { type: 'merge', body }, { namespace, signal });
      return;
    }
    case 'stopBuilder':
      log.info({ deployment: BUILDER_DEPLOYMENT }, 'stopping the Machine OS Builder');
      await client.delete(Deployments, BUILDER_DEPLOYMENT, {
        namespace,
        propagationPolicy: 'Background',
        signal,
      });
      return;
    case 'changeRights':
      for (const right of step.changes) await changeRight(right, options);
      return;
    case 'changeMachineOSConfigs':
      await change(step.changes, options);
      return;
    case 'prune':
      await pruneAll(step.builds, options);
  }
}

async function observeRight(
  right: BuilderRight,
  { client, namespace, signal }: LayeringOptions,
): Promise<ObservedRight> {
  const { kind } = right;
  const present = await client.find(kind, BUILDER_DEPLOYMENT, { ...placeOf(kind, namespace), signal });
  return { ...right, present };
}

async function changeRight(
  { to, kind, wanted }: RightChange,
  { client, log, namespace, signal }: LayeringOptions,
): Promise<void> {
  const name = BUILDER_DEPLOYMENT;
  const where = { ...placeOf(kind, namespace), signal };
  log.info({ kind: kind.kind, name, to }, "changing the Machine OS Builder's rights");
  if (to === 'create') await unlessThere(client.create(kind, wanted, where));
  else await client.delete(kind, name, where);
}

function placeOf({ namespaced }: Kind<KubernetesObject>, namespace: string): { readonly namespace?: string } {
  return namespaced ? { namespace } : {};
}

async function change(
  changes: MachineOSConfigChanges,
  { client, log, signal }: LayeringOptions,
): Promise<void> {
  for (const config of changes.create) {
    log.info({ pool: config.metadata.name }, 'layering the pool');
    await unlessThere(client.create(MachineOSConfigs, config, { signal }));
  }
  for (const config of changes.replace) await client.replace(MachineOSConfigs, config, { signal });
  for (const config of changes.delete) {
    log.info({ pool: config.metadata.name }, 'taking the pool back to the stock image');
    await client.delete(MachineOSConfigs, config.metadata.name, { signal });
  }
}

/**
 * One that fails keeps no other from going; it is told where an admin looks, and tried again.
 *
 * @throws AggregateError with every failure.
 */
async function pruneAll(builds: readonly PrunedBuild[], options: LayeringOptions): Promise<void> {
  const failures: unknown[] = [];
  for (const pruned of builds) {
    try {
      await prune(pruned, options);
    } catch (error) {
      options.signal.throwIfAborted();
      failures.push(error);
      const why = error instanceof Error ? error.message : String(error);
      options.events.warning(
        pruned.build,
        'PruneFailed',
        `${pruned.images.join(', ')} could not be deleted: ${why}; it is tried again, and given up when this object is deleted`,
      );
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} builds could not be pruned`);
}

/** The images first: the MachineOSBuild is the only record of them. */
async function prune(
  { build, images }: PrunedBuild,
  { client, pruner, log, signal }: LayeringOptions,
): Promise<void> {
  for (const image of images) await pruner.deleteImage(image, build, signal);
  await client.delete(MachineOSBuilds, build.metadata.name, { signal });
  log.info({ build: build.metadata.name, images }, 'build pruned');
}

async function unlessThere(created: Promise<unknown>): Promise<void> {
  try {
    await created;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
