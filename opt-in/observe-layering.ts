import type { Logger } from 'pino';
import { type ConfigMap, ConfigMaps, type Deployment, Deployments, Pods } from '../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT, SIGNING_KEYS_CONFIG_MAP, SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import { type PoolRevision, PoolRevisions } from '../api/pool-revision.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createInformer, type Informer } from '../cluster/informer.ts';
import { builderPodLabels } from './builder-deployment.ts';
import { type BuilderRight, builderRights, type ObservedRight, placeOf } from './builder-rights.ts';
import type { LayeringObservation } from './decide-layering.ts';
import { readSigning, readSwitch } from './switch.ts';

type Watched<T extends KubernetesObject> = Pick<Informer<T>, 'list' | 'onChange' | 'synced'>;

/** What layering reads, one watch per kind. */
export interface LayeringCaches {
  /** Started by the process for its other controllers as well: nodes are many. */
  readonly shared: {
    readonly pools: Watched<MachineConfigPool>;
    readonly machineConfigNodes: Watched<MachineConfigNode>;
    readonly machineConfigurations: Watched<MachineConfiguration>;
    readonly machineOSConfigs: Watched<MachineOSConfig>;
    readonly machineOSBuilds: Watched<MachineOSBuild>;
    readonly poolRevisions: Watched<PoolRevision>;
    /** The ConfigMap of the layering switch. */
    readonly layeringSwitch: Pick<Informer<ConfigMap>, 'get' | 'onChange' | 'synced'>;
  };
  /** The ConfigMap of the public keys that images are signed with. */
  readonly signingKeys: Informer<ConfigMap>;
  readonly deployments: Informer<Deployment>;
  readonly rights: readonly {
    readonly right: BuilderRight;
    readonly informer: Informer<KubernetesObject>;
  }[];
}

/**
 * Creates the caches that layering alone reads; nothing is read before they are started.
 *
 * @param namespace where Shale runs.
 */
export function createLayeringCaches(
  client: ApiClient,
  shared: LayeringCaches['shared'],
  namespace: string,
  log: Logger,
): LayeringCaches {
  const named = (name: string) => ({ fieldSelector: `metadata.name=${name}`, log });
  return {
    shared,
    signingKeys: createInformer(client, ConfigMaps, { namespace, ...named(SIGNING_KEYS_CONFIG_MAP) }),
    deployments: createInformer(client, Deployments, { namespace, log }),
    rights: builderRights(namespace).map((right) => ({
      right,
      informer: createInformer(client, right.kind, {
        ...placeOf(right),
        ...named(BUILDER_DEPLOYMENT),
      }),
    })),
  };
}

/** @returns the caches that have to be started for layering, in addition to the shared ones. */
export function ownCaches({ signingKeys, deployments, rights }: LayeringCaches) {
  return [signingKeys, deployments, ...rights.map(({ informer }) => informer)];
}

export interface LayeringObserverParts {
  readonly client: ApiClient;
  readonly caches: LayeringCaches;
  readonly namespace: string;
  /** The key that images are signed with, as it was read last. */
  readonly signing: {
    readonly state: LayeringObservation['signingKey'];
    read(when: 'now' | 'of-late', signal: AbortSignal): Promise<void>;
  };
  readonly desiredBuilder: LayeringObservation['desiredBuilder'];
  readonly keepImages: number;
}

/** The builder signs with no key that isn't published, so a build that is retried may wait for that. */
function isRetried({ status }: MachineOSBuild): boolean {
  return status?.attempts !== undefined && status.buildEnd === undefined;
}

/** What was observed, with the object that the switch was read from. */
export interface ObservedLayering extends LayeringObservation {
  readonly switchConfigMap: ConfigMap | undefined;
}

/** Observes everything that the state of layering consists of. */
export class LayeringObserver {
  readonly #parts: LayeringObserverParts;

  constructor(parts: LayeringObserverParts) {
    this.#parts = parts;
  }

  /**
   * Reads the caches. Most changes of nodes and pools require nothing here, and this shows it without a request, except
   * that the signing key is read again now and then while images are built. The builder's pods are not watched: they
   * matter only while something else of the builder exists.
   *
   * @throws ApiError
   */
  async fromCaches(signal: AbortSignal): Promise<ObservedLayering> {
    const { caches, namespace } = this.#parts;
    const isBuilding = caches.deployments.get(BUILDER_DEPLOYMENT, namespace) !== undefined;
    const { machineOSConfigs, machineOSBuilds, machineConfigNodes, poolRevisions } = caches.shared;
    if (isBuilding) {
      const mayWait = machineOSBuilds.list().some(isRetried);
      await this.#parts.signing.read(mayWait ? 'now' : 'of-late', signal);
    }
    return this.#observation({
      switchConfigMap: caches.shared.layeringSwitch.get(SWITCH_CONFIG_MAP, namespace),
      publishedKeys: caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, namespace),
      machineOSConfigs: machineOSConfigs.list(),
      builds: machineOSBuilds.list(),
      nodes: machineConfigNodes.list(),
      revisions: poolRevisions.list(),
      builder: caches.deployments.get(BUILDER_DEPLOYMENT, namespace),
      rights: caches.rights.map(({ right, informer }) => ({
        ...right,
        present: informer.get(BUILDER_DEPLOYMENT, placeOf(right).namespace),
      })),
      builderPods: 0,
    });
  }

  /**
   * Reads what decides from the API server: right after a step the caches still show the state before it.
   *
   * @param nodes `live` before something is deleted; otherwise from the cache, because nodes are many. So are
   *   revisions.
   * @throws ApiError
   */
  async fromServer(nodes: 'cached' | 'live', signal: AbortSignal): Promise<ObservedLayering> {
    const { client, caches, namespace } = this.#parts;
    const labelSelector = Object.entries(builderPodLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
    const [switchConfigMap, publishedKeys, builder, pods, machineOSConfigs, builds, rights] =
      await Promise.all([
        client.find(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal }),
        client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal }),
        client.find(Deployments, BUILDER_DEPLOYMENT, { namespace, signal }),
        client.list(Pods, { namespace, labelSelector, signal }),
        client.list(MachineOSConfigs, { signal }),
        client.list(MachineOSBuilds, { signal }),
        Promise.all(caches.rights.map(({ right }) => this.#right(right, signal))),
        this.#parts.signing.read('now', signal),
      ]);
    return this.#observation({
      switchConfigMap,
      publishedKeys,
      machineOSConfigs: machineOSConfigs.items,
      builds: builds.items,
      nodes:
        nodes === 'live'
          ? (await client.list(MachineConfigNodes, { signal })).items
          : caches.shared.machineConfigNodes.list(),
      revisions:
        nodes === 'live'
          ? (await client.list(PoolRevisions, { signal })).items
          : caches.shared.poolRevisions.list(),
      builder,
      rights,
      builderPods: pods.items.length,
    });
  }

  #observation(
    read: Omit<
      ObservedLayering,
      'state' | 'signing' | 'signingKey' | 'pools' | 'desiredBuilder' | 'keepImages'
    >,
  ): ObservedLayering {
    const { caches, desiredBuilder, keepImages } = this.#parts;
    return {
      ...read,
      state: readSwitch(read.switchConfigMap),
      signing: readSigning(read.switchConfigMap),
      signingKey: this.#parts.signing.state,
      pools: caches.shared.pools.list(),
      desiredBuilder,
      keepImages,
    };
  }

  async #right(right: BuilderRight, signal: AbortSignal): Promise<ObservedRight> {
    const { client } = this.#parts;
    const present = await client.find(right.kind, BUILDER_DEPLOYMENT, { ...placeOf(right), signal });
    return { ...right, present };
  }
}
