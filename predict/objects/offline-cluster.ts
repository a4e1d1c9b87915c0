import { ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import { ClusterImagePolicies, ImagePolicies } from '../../api/image-policies.ts';
import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import { type ConfigMap, ConfigMaps, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { labels, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import { apiVersionOf, type Kind, type KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { type PinnedImageSet, PinnedImageSets } from '../../api/pinned-image-set.ts';
import { DEFAULT_LIMITS, type Limits } from '../../machineconfig/ignition/contents.ts';
import type { OSImageStreams } from '../../machineconfig/os-image-streams.ts';
import type { RegistryObjects } from '../../machineconfig/registries/machine-config.ts';
import { pushSpecsByPool } from '../../machineconfig/registries/own-images.ts';
import { generatedFrom, type ServiceVerdict, serviceConfigs } from '../../machineconfig/service-configs.ts';
import { hasEffectiveName, shapeOf } from './object-shape.ts';

/** What is wrong with an object of a cluster. */
export interface ObjectProblem {
  /** Undefined for what several objects have together. */
  readonly object: ObjectRef | undefined;
  /** On one line, without the object. */
  readonly what: string;
}

export interface ObjectRef {
  readonly kind: string;
  readonly name: string;
}

/** The objects of a cluster that rendering needs. */
export interface OfflineCluster {
  /** Problems of objects that violate their schema; these objects are in none of the other fields. */
  readonly malformed: readonly ObjectProblem[];
  /** Whole objects and fields that Shale doesn't know and that have no effect, one line each. */
  readonly shapeWarnings: readonly string[];
  readonly pools: readonly MachineConfigPool[];
  /** Those of the pools that no file defines. */
  readonly madeUp: readonly MachineConfigPool[];
  readonly configs: readonly MachineConfig[];
  readonly machineConfiguration: MachineConfiguration | undefined;
  /** Of the layered pools. */
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly mirrors: RegistryObjects;
  /** What becomes of KubeletConfigs and ContainerRuntimeConfigs. */
  readonly services: readonly ServiceVerdict[];
  /** What is generated from earlier versions of these. */
  readonly generated: readonly MachineConfig[];
  readonly nodes: readonly Node[];
  readonly pinnedImageSets: readonly PinnedImageSet[];
  /** The number of objects of Shale's kinds that are no MachineConfigs. */
  readonly others: number;
  /** Streams of OS images; undefined where no ConfigMap has any. */
  readonly streams: OSImageStreams | undefined;
  /** Limits for decompressed contents. */
  readonly limits: Limits;
}

/** Written to rendered configs in place of the controller's version. */
export const OFFLINE_VERSION = 'offline';

/** How objects of files or of a cluster are read. */
export interface Reading {
  /** Limits for decompressed contents. */
  readonly limits?: Limits;
  /** They are a cluster's, which has no other pools; absent: pools that no file defines are made up. */
  readonly isLive?: boolean;
}

/**
 * Sorts objects of files into a cluster. Kinds that don't affect rendering are ignored; of two objects of the same kind
 * and name the later one is used, as if it had been applied over the first.
 *
 * @returns the cluster; pools that no file defines are created as OpenShift does, one for each role of the
 *   MachineConfigs: `worker` and `master` select their own, any other inherits worker's. In a live cluster none is.
 */
export function offlineCluster(
  objects: readonly KubernetesObject[],
  { limits = DEFAULT_LIMITS, isLive = false }: Reading = {},
): OfflineCluster {
  const latest = new Map(
    objects.map((object) => [
      [object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name].join('/'),
      object,
    ]),
  );
  const checked = [...latest.values()].filter((object) => !isLive || hasEffectiveName(object)).map(shapeOf);
  const wellFormed = checked.filter(({ problems }) => problems.length === 0);
  const ofKind = <T extends KubernetesObject>(kind: Kind<T>): T[] =>
    wellFormed.map(({ object }) => object).filter((object) => isOfKind(object, kind));
  const given = ofKind(MachineConfigPools);
  const machineConfigs = splitConfigs(ofKind);
  const madeUp = isLive ? [] : missingPools(machineConfigs.configs, given);
  const pools = [...given, ...madeUp].toSorted(by(({ metadata }) => metadata.name));
  const asGiven = {
    nodes: ofKind(Nodes),
    pinnedImageSets: ofKind(PinnedImageSets),
    machineOSConfigs: ofKind(MachineOSConfigs),
    machineConfiguration: ofKind(MachineConfigurations)[0],
  };
  return {
    malformed: checked.flatMap(({ object, problems }) => problemsWith(object, problems)),
    shapeWarnings: checked.flatMap(({ warnings }) => warnings),
    others: checked.filter(({ isDefined }) => isDefined).length - machineConfigs.configs.length,
    ...machineConfigs,
    ...asGiven,
    limits,
    pools,
    madeUp,
    services: serviceConfigs({ ...serviceObjects(ofKind), pools, nodes: asGiven.nodes }, OFFLINE_VERSION),
    streams: streamsOf(ofKind(ConfigMaps))[0]?.data,
    mirrors: mirrorsOf(ofKind),
  };
}

type OfKind = <T extends KubernetesObject>(kind: Kind<T>) => T[];

function serviceObjects(ofKind: OfKind) {
  return {
    kubeletConfigs: ofKind(KubeletConfigs),
    containerRuntimeConfigs: ofKind(ContainerRuntimeConfigs),
  };
}

/** What is generated from KubeletConfigs and ContainerRuntimeConfigs among these objects is generated again. */
function splitConfigs(ofKind: OfKind): Pick<OfflineCluster, 'configs' | 'generated'> {
  const owners: readonly KubernetesObject[] = Object.values(serviceObjects(ofKind)).flat();
  const { generated = [], configs = [] } = Object.groupBy(ofKind(MachineConfigs), (config) => {
    const owner = generatedFrom(config);
    const isOwned = owners.some(({ kind, metadata }) => kind === owner?.kind && metadata.name === owner.name);
    return isOwned ? 'generated' : 'configs';
  });
  return { configs, generated };
}

function mirrorsOf(ofKind: OfKind): RegistryObjects {
  return {
    icsp: ofKind(ImageContentSourcePolicies),
    idms: ofKind(ImageDigestMirrorSets),
    itms: ofKind(ImageTagMirrorSets),
    image: ofKind(ImageConfigs)[0],
    clusterPolicies: ofKind(ClusterImagePolicies),
    namespacePolicies: ofKind(ImagePolicies),
    layered: { byPool: pushSpecsByPool(ofKind(MachineOSConfigs)), keys: undefined },
  };
}

function isOfKind<T extends KubernetesObject>(object: KubernetesObject, kind: Kind<T>): object is T {
  return object.kind === kind.kind && object.apiVersion === apiVersionOf(kind);
}

/**
 * The cluster after a change is applied.
 *
 * @param prune the change is the complete new state: objects that it doesn't contain are deleted. Pools are kept when
 *   it contains none, because they often come from the installer and not from the repository of the MachineConfigs;
 *   MachineOSConfigs are kept too, because the layering switch creates them.
 */
export function changedCluster(
  before: readonly KubernetesObject[],
  change: readonly KubernetesObject[],
  { prune, ...reading }: Reading & { readonly prune: boolean },
): OfflineCluster {
  if (!prune) return offlineCluster([...before, ...change], reading);
  const { pools, machineOSConfigs, nodes } = offlineCluster(before, reading);
  const names = (sought: string) => change.some(({ kind }) => kind === sought);
  const kept = [
    ...nodes,
    ...(change.some((object) => streamsOf([object as ConfigMap]).length > 0)
      ? []
      : streamsOf(before as ConfigMap[])),
    ...(names(MachineConfigPools.kind) ? [] : pools),
    ...(names(MachineOSConfigs.kind) ? [] : machineOSConfigs),
  ];
  return offlineCluster([...kept, ...change], reading);
}

/** @returns those objects that are the ConfigMap with the streams; a later one replaces an earlier one. */
function streamsOf(objects: readonly ConfigMap[]): ConfigMap[] {
  return objects
    .filter((object) => isOfKind(object, ConfigMaps) && object.metadata.name === OS_IMAGE_STREAMS_CONFIG_MAP)
    .slice(-1);
}

function missingPools(
  configs: readonly MachineConfig[],
  given: readonly MachineConfigPool[],
): MachineConfigPool[] {
  const roles = new Set(configs.flatMap(({ metadata }) => metadata.labels?.[labels.role] ?? []));
  for (const { metadata } of given) roles.delete(metadata.name);
  return [...roles].map((role) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: MachineConfigPools.kind,
    metadata: { name: role },
    spec: {
      machineConfigSelector: {
        matchExpressions: [
          {
            key: labels.role,
            operator: 'In',
            values: role === 'master' || role === 'worker' ? [role] : ['worker', role],
          },
        ],
      },
    },
  }));
}

export function problemsWith(
  object: KubernetesObject | undefined,
  lines: readonly string[],
): ObjectProblem[] {
  const named = object && { kind: object.kind, name: object.metadata.name };
  return lines.map((what) => ({ object: named, what }));
}

/** @returns a problem on one line, for the command line. */
export function formatObjectProblem({ object, what }: ObjectProblem): string {
  return object === undefined ? what : `${object.kind} ${object.name}: ${what}`;
}
