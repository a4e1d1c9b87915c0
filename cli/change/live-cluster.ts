import { ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import { ClusterImagePolicies, ImagePolicies } from '../../api/image-policies.ts';
import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import { ConfigMaps, type Lease, Leases, Nodes, type Pod } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import {
  annotations,
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  OS_IMAGE_STREAMS_CONFIG_MAP,
} from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PinnedImageSets } from '../../api/pinned-image-set.ts';
import type { PodsSelected } from '../../api/pool-settings/values.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { generatedFrom } from '../../machineconfig/service-configs.ts';
import { type ClusterState, machineConfigsOf } from '../../predict/objects/cluster-state.ts';
import { MaintenanceLookup } from '../../rollout/node-claims.ts';
import { readAll, unlessForbidden } from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { readTightBudgets, type TightBudget } from './blocked-drains.ts';
import { readVotingPods } from './quorum-remarks.ts';

/** ms; an interactive command must not hang when the API server doesn't respond. */
const MAINTENANCE_DEADLINE_MS = 60_000;

/** The kinds that affect rendering. */
const KINDS: readonly Kind<KubernetesObject>[] = [
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
const LATER_KINDS: readonly Kind<KubernetesObject>[] = [ClusterImagePolicies, ImagePolicies, PinnedImageSets];

/** The objects of a cluster, and the state of its nodes. */
export interface LiveCluster extends ClusterState {
  /**
   * Objects that affect rendering, nodes included, without what controllers generated from them: commands generate it
   * again. Only what is generated from KubeletConfigs and ContainerRuntimeConfigs is kept, because it can outlast a
   * change of these.
   */
  readonly objects: readonly KubernetesObject[];
  /** The leases of nodes; undefined when the user is not allowed to list them. */
  readonly leases: readonly Lease[] | undefined;
  /** Names of nodes with an active NodeMaintenance (medik8s). */
  readonly inMaintenance: ReadonlySet<string>;
  /** Reads the PodDisruptionBudgets that allow no disruption now, which only a change that drains waits for. */
  readonly tightBudgets: (signal: AbortSignal) => Promise<readonly TightBudget[]>;
  /** Lists pods that vote; none where the user may not. */
  readonly votingPods: (selected: readonly PodsSelected[], signal: AbortSignal) => Promise<readonly Pod[]>;
}

async function ifServed<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof CommandError && isNotFound(error.cause)) return undefined;
    throw error;
  }
}

/** @throws {CommandError} when the cluster can't be read, or Shale is not installed in it. */
export async function readLiveCluster(
  client: ApiClient,
  leaseNamespace = DEFAULT_LEASE_NAMESPACE,
  namespace = DEFAULT_NAMESPACE,
): Promise<LiveCluster> {
  const maintenance = new MaintenanceLookup(client, Date.now);
  const deadline = AbortSignal.timeout(MAINTENANCE_DEADLINE_MS);
  const [lists, laterLists, streams, machineConfigNodes, nodes, builds, leases, inMaintenance] =
    await Promise.all([
      Promise.all(KINDS.map((kind) => readAll(client, kind))),
      Promise.all(LATER_KINDS.map((kind) => ifServed(unlessForbidden(readAll(client, kind))))),
      unlessForbidden(client.find(ConfigMaps, OS_IMAGE_STREAMS_CONFIG_MAP, { namespace, signal: deadline })),
      readAll(client, MachineConfigNodes),
      readAll(client, Nodes),
      unlessForbidden(readAll(client, MachineOSBuilds)),
      unlessForbidden(readAll(client, Leases, { namespace: leaseNamespace })),
      unlessForbidden(maintenance.nodes(deadline)),
    ]);
  const isGenerated = ({ metadata }: KubernetesObject) =>
    metadata.annotations?.[annotations.generatedByController] !== undefined;
  const objects = [...lists, ...laterLists.map((list) => list ?? [])].flat();
  const rendered = machineConfigsOf(objects).filter(isGenerated);
  return {
    objects: [
      ...objects.filter((object) => !isGenerated(object) || generatedFrom(object as MachineConfig)),
      ...nodes,
      ...(streams === undefined ? [] : [streams]),
    ],
    rendered: new Map(rendered.map((config) => [config.metadata.name, config])),
    machineConfigNodes,
    nodes,
    builds: builds ?? [],
    leases,
    inMaintenance: inMaintenance ?? new Set(),
    tightBudgets: (signal) => readTightBudgets(client, signal),
    votingPods: (selected, signal) => readVotingPods(client, selected, signal),
  };
}
