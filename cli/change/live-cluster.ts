import { ConfigMaps, type Lease, Leases, Nodes, type Pod } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import type { PodsSelected } from '../../api/pool-settings/values.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import {
  LATER_RENDERING_KINDS,
  RENDERING_KINDS,
  type ReadCluster,
  readClusterOf,
} from '../../predict/objects/read-cluster.ts';
import { MaintenanceLookup } from '../../rollout/node-claims.ts';
import { readAll, unlessForbidden } from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { readTightBudgets, type TightBudget } from './blocked-drains.ts';
import { readVotingPods } from './quorum-remarks.ts';

/** ms; an interactive command must not hang when the API server doesn't respond. */
const MAINTENANCE_DEADLINE_MS = 60_000;

/** The objects of a cluster, and the state of its nodes. */
export interface LiveCluster extends ReadCluster {
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
      Promise.all(RENDERING_KINDS.map((kind) => readAll(client, kind))),
      Promise.all(LATER_RENDERING_KINDS.map((kind) => ifServed(unlessForbidden(readAll(client, kind))))),
      unlessForbidden(client.find(ConfigMaps, OS_IMAGE_STREAMS_CONFIG_MAP, { namespace, signal: deadline })),
      readAll(client, MachineConfigNodes),
      readAll(client, Nodes),
      unlessForbidden(readAll(client, MachineOSBuilds)),
      unlessForbidden(readAll(client, Leases, { namespace: leaseNamespace })),
      unlessForbidden(maintenance.nodes(deadline)),
    ]);
  return {
    ...readClusterOf({
      rendering: [...lists, ...laterLists.map((list) => list ?? [])].flat(),
      streams,
      machineConfigNodes,
      nodes,
      builds: builds ?? [],
    }),
    leases,
    inMaintenance: inMaintenance ?? new Set(),
    tightBudgets: (signal) => readTightBudgets(client, signal),
    votingPods: (selected, signal) => readVotingPods(client, selected, signal),
  };
}
