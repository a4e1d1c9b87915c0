import type { Logger } from 'pino';
import { type ContainerRuntimeConfig, ContainerRuntimeConfigs } from '../api/container-runtime-config.ts';
import {
  ClusterImagePolicies,
  type ClusterImagePolicy,
  ImagePolicies,
  type ImagePolicy,
} from '../api/image-policies.ts';
import {
  type ImageConfig,
  ImageConfigs,
  ImageContentSourcePolicies,
  type ImageContentSourcePolicy,
  type ImageDigestMirrorSet,
  ImageDigestMirrorSets,
  type ImageTagMirrorSet,
  ImageTagMirrorSets,
} from '../api/image-sources.ts';
import { type KubeletConfig, KubeletConfigs } from '../api/kubelet-config.ts';
import {
  type ConfigMap,
  ConfigMaps,
  type Lease,
  Leases,
  type Node,
  Nodes,
  type Secret,
  Secrets,
} from '../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../api/machine-os-config.ts';
import {
  KUBELET_CA_CONFIG_MAP,
  NODE_PULL_SECRET,
  OS_IMAGE_STREAMS_CONFIG_MAP,
  REGISTRY_CAS_CONFIG_MAP,
  SIGNING_KEYS_CONFIG_MAP,
  SWITCH_CONFIG_MAP,
} from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { type PoolRevision, PoolRevisions } from '../api/pool-revision.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createInformer, withoutManagedFields } from '../cluster/informer.ts';
import { FreshCache } from './fresh-cache.ts';
import type { RolloutOptions } from './options.ts';

/** What the controllers of this room read: one watch per kind, shared by all of them. */
export interface Caches extends NodeCaches, PoolCaches, ServiceCaches, ImageSourceCaches, OwnCaches {}

export interface NodeCaches {
  readonly nodes: FreshCache<Node>;
  readonly machineConfigNodes: FreshCache<MachineConfigNode>;
  /** Those of nodes. */
  readonly leases: FreshCache<Lease>;
}

export interface PoolCaches {
  readonly pools: FreshCache<MachineConfigPool>;
  readonly machineConfigs: FreshCache<MachineConfig>;
  readonly machineConfigurations: FreshCache<MachineConfiguration>;
  readonly machineOSConfigs: FreshCache<MachineOSConfig>;
  readonly machineOSBuilds: FreshCache<MachineOSBuild>;
  readonly poolRevisions: FreshCache<PoolRevision>;
}

/** What the services of nodes are configured by. */
interface ServiceCaches {
  readonly kubeletConfigs: FreshCache<KubeletConfig>;
  readonly containerRuntimeConfigs: FreshCache<ContainerRuntimeConfig>;
}

/** What decides where images are pulled from, and which are trusted. */
export interface ImageSourceCaches {
  readonly digestMirrors: FreshCache<ImageDigestMirrorSet>;
  readonly tagMirrors: FreshCache<ImageTagMirrorSet>;
  readonly contentSources: FreshCache<ImageContentSourcePolicy>;
  readonly imageConfigs: FreshCache<ImageConfig>;
  readonly clusterImagePolicies: FreshCache<ClusterImagePolicy>;
  readonly imagePolicies: FreshCache<ImagePolicy>;
}

/** Single objects in the namespace that Shale runs in. */
interface OwnCaches {
  readonly registryCAs: FreshCache<ConfigMap>;
  readonly kubeletCA: FreshCache<ConfigMap>;
  readonly signingKeys: FreshCache<ConfigMap>;
  readonly osImageStreams: FreshCache<ConfigMap>;
  readonly layeringSwitch: FreshCache<ConfigMap>;
  readonly pullSecret: FreshCache<Secret>;
}

/** Creates the caches; nothing is read before they are started. */
export function createCaches(
  client: ApiClient,
  options: Pick<RolloutOptions, 'namespace' | 'leases'>,
  log: Logger,
): Caches {
  const cache = <T extends KubernetesObject>(
    kind: Kind<T>,
    where: { readonly namespace?: string; readonly fieldSelector?: string } = {},
  ) => new FreshCache(createInformer(client, kind, { ...where, log }));
  const one = <T extends KubernetesObject>(kind: Kind<T>, name: string) =>
    cache(kind, { namespace: options.namespace, fieldSelector: `metadata.name=${name}` });
  const ofNodes: NodeCaches = {
    nodes: new FreshCache(createInformer(client, Nodes, { keep: keptNode, log }), keptNode),
    machineConfigNodes: cache(MachineConfigNodes),
    leases: cache(Leases, { namespace: options.leases.namespace }),
  };
  const ofPools: PoolCaches = {
    pools: cache(MachineConfigPools),
    machineConfigs: cache(MachineConfigs),
    machineConfigurations: cache(MachineConfigurations),
    machineOSConfigs: cache(MachineOSConfigs),
    machineOSBuilds: cache(MachineOSBuilds),
    poolRevisions: cache(PoolRevisions),
  };
  const ofServices: ServiceCaches = {
    kubeletConfigs: cache(KubeletConfigs),
    containerRuntimeConfigs: cache(ContainerRuntimeConfigs),
  };
  const imageSources: ImageSourceCaches = {
    digestMirrors: cache(ImageDigestMirrorSets),
    tagMirrors: cache(ImageTagMirrorSets),
    contentSources: cache(ImageContentSourcePolicies),
    imageConfigs: cache(ImageConfigs),
    clusterImagePolicies: cache(ClusterImagePolicies),
    imagePolicies: cache(ImagePolicies),
  };
  const own: OwnCaches = {
    registryCAs: one(ConfigMaps, REGISTRY_CAS_CONFIG_MAP),
    kubeletCA: one(ConfigMaps, KUBELET_CA_CONFIG_MAP),
    signingKeys: one(ConfigMaps, SIGNING_KEYS_CONFIG_MAP),
    osImageStreams: one(ConfigMaps, OS_IMAGE_STREAMS_CONFIG_MAP),
    layeringSwitch: one(ConfigMaps, SWITCH_CONFIG_MAP),
    pullSecret: one(Secrets, NODE_PULL_SECRET),
  };
  return { ...ofNodes, ...ofPools, ...ofServices, ...imageSources, ...own };
}

/** @returns every cache, to start them and to wait for them together. */
export function allCaches(caches: Caches): readonly Pick<FreshCache<KubernetesObject>, 'start' | 'synced'>[] {
  return Object.values(caches);
}

/**
 * What of a Node is held in memory. A kubelet's image list and capacities are ten times as long as what a rollout
 * reads, and with thousands of nodes most of what this process would hold.
 */
export function keptNode(node: Node): Node {
  const { apiVersion, kind, metadata, spec = {}, status = {} } = withoutManagedFields(node);
  const { unschedulable, taints } = spec;
  const { bootID, machineID, architecture, containerRuntimeVersion } = status.nodeInfo ?? {};
  return {
    apiVersion,
    kind,
    metadata,
    spec: {
      unschedulable,
      taints,
    },
    status: {
      conditions: (status.conditions ?? []).filter(({ type }) => type === 'Ready'),
      nodeInfo: {
        bootID,
        machineID,
        architecture,
        containerRuntimeVersion,
      },
    },
  };
}
