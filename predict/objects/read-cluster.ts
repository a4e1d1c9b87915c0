import { ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import { ClusterImagePolicies, ImagePolicies } from '../../api/image-policies.ts';
import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import type { ConfigMap, Node } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PinnedImageSets } from '../../api/pinned-image-set.ts';
import { generatedFrom } from '../../machineconfig/service-configs.ts';
import { type ClusterState, machineConfigsOf } from './cluster-state.ts';

/** The kinds that affect rendering. */
export const RENDERING_KINDS: readonly Kind<KubernetesObject>[] = [
  MachineConfigs,
  MachineConfigPools,
  MachineConfigurations,
  MachineOSConfigs,
  KubeletConfigs,
  ContainerRuntimeConfigs,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
  ImageContentSourcePolicies,
  ImageConfigs,
];

/** So do these, which a cluster with an earlier version of Shale doesn't have (docs/support.md, "Skew"). */
export const LATER_RENDERING_KINDS: readonly Kind<KubernetesObject>[] = [
  ClusterImagePolicies,
  ImagePolicies,
  PinnedImageSets,
];

/** What was read of a cluster, to predict what a change of it costs. */
export interface ReadObjects {
  /** Of the kinds that affect rendering. */
  readonly rendering: readonly KubernetesObject[];
  /** The ConfigMap with the OS image streams; undefined where there is none, or it may not be read. */
  readonly streams: ConfigMap | undefined;
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  readonly builds: readonly MachineOSBuild[];
}

/** A cluster as it was read. */
export interface ReadCluster extends ClusterState {
  /**
   * Objects that affect rendering, nodes included, without what controllers generated from them: predictions generate
   * it again. Only what is generated from KubeletConfigs and ContainerRuntimeConfigs is kept, because it can outlast a
   * change of these.
   */
  readonly objects: readonly KubernetesObject[];
}

/** @returns the objects of a cluster as predictions take them. */
export function readClusterOf(read: ReadObjects): ReadCluster {
  const { rendering, streams, machineConfigNodes, nodes, builds } = read;
  const isGenerated = ({ metadata }: KubernetesObject) =>
    metadata.annotations?.[annotations.generatedByController] !== undefined;
  const rendered = machineConfigsOf(rendering).filter(isGenerated);
  return {
    objects: [
      ...rendering.filter((object) => !isGenerated(object) || generatedFrom(object as MachineConfig)),
      ...nodes,
      ...(streams === undefined ? [] : [streams]),
    ],
    rendered: new Map(rendered.map((config) => [config.metadata.name, config])),
    machineConfigNodes,
    nodes,
    builds,
  };
}
