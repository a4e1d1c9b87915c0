import type { Command } from 'commander';
import { ImageConfigs } from '../../api/image-config.ts';
import {
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-mirrors.ts';
import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { type ApiClient, ApiError, isNotFound, type Selection } from '../../cluster/api-client.ts';
import { type Connection, kubeconfigConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { MaintenanceLookup } from '../../rollout/node-maintenance.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';

/** Flags of commands that can look at a cluster. */
export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Where Shale runs. */
  readonly namespace: string;
}

/** A command that answers a person doesn't hang on a cluster that does not. */
const DEADLINE_MS = 60_000;

/** @returns the command with `--kubeconfig`, `--context` and `--namespace`, as kubectl has them. */
export function withClusterFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'kubeconfig file of the cluster; default: the one that kubectl uses')
    .option('--context <name>', 'context of the kubeconfig to use')
    .option('-n, --namespace <name>', 'namespace in which Shale runs', DEFAULT_NAMESPACE);
}

/** @returns the command with `--lease-namespace`, as the operator has it. */
export function withLeaseNamespace(command: Command): Command {
  return command.option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE);
}

/** What has a part in rendering. */
const KINDS: readonly Kind<KubernetesObject>[] = [
  MachineConfigs,
  MachineConfigPools,
  MachineConfigurations,
  MachineOSConfigs,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
  ImageContentSourcePolicies,
  ImageConfigs,
];

/** @returns a client of the cluster that the flags or the environment name. @throws CommandError when there is none. */
export async function connect(flags: Partial<ClusterFlags>): Promise<ApiClient> {
  return createApiClient(await connectionOf(flags));
}

/** @returns how the cluster of the flags or the environment is reached. @throws CommandError when there is none. */
export async function connectionOf({ kubeconfig, context }: Partial<ClusterFlags>): Promise<Connection> {
  try {
    return await kubeconfigConnection({
      ...(kubeconfig === undefined ? {} : { path: kubeconfig }),
      ...(context === undefined ? {} : { context }),
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `no cluster found: ${why}; specify one with --kubeconfig or KUBECONFIG, or pass files if the command accepts them`,
      exitCodes.unavailable,
      {
        cause: error,
      },
    );
  }
}

/** What a cluster has, and what its nodes are in. */
export interface LiveCluster {
  /** What has a part in rendering, without what controllers made of it: that is made again. */
  readonly objects: readonly KubernetesObject[];
  /** The rendered configs, by name. */
  readonly rendered: ReadonlyMap<string, MachineConfig>;
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  /** Of every pool; none where whoever asks may not read them. */
  readonly builds: readonly MachineOSBuild[];
  /** The leases of nodes; undefined where whoever asks may not read them. */
  readonly leases: readonly Lease[] | undefined;
  /** Names of nodes with an active NodeMaintenance (medik8s). */
  readonly inMaintenance: ReadonlySet<string>;
}

/** @throws CommandError when the cluster can't be read, or Shale is not installed in it. */
export async function readLiveCluster(
  client: ApiClient,
  leaseNamespace = DEFAULT_LEASE_NAMESPACE,
): Promise<LiveCluster> {
  const maintenance = new MaintenanceLookup(client, Date.now);
  const [lists, machineConfigNodes, nodes, builds, leases, inMaintenance] = await Promise.all([
    Promise.all(KINDS.map((kind) => readAll(client, kind))),
    readAll(client, MachineConfigNodes),
    readAll(client, Nodes),
    unlessForbidden(readAll(client, MachineOSBuilds)),
    unlessForbidden(readAll(client, Leases, { namespace: leaseNamespace })),
    unlessForbidden(maintenance.nodes(AbortSignal.timeout(DEADLINE_MS))),
  ]);
  const isGenerated = ({ metadata }: KubernetesObject) =>
    metadata.annotations?.[annotations.generatedByController] !== undefined;
  const objects = lists.flat();
  const rendered = machineConfigsOf(objects).filter(isGenerated);
  return {
    objects: objects.filter((object) => !isGenerated(object)),
    rendered: new Map(rendered.map((config) => [config.metadata.name, config])),
    machineConfigNodes,
    nodes,
    builds: builds ?? [],
    leases,
    inMaintenance: inMaintenance ?? new Set(),
  };
}

/** @returns those objects that are MachineConfigs. */
export function machineConfigsOf(objects: readonly KubernetesObject[]): readonly MachineConfig[] {
  return objects.filter(({ kind }) => kind === MachineConfigs.kind) as MachineConfig[];
}

/** @returns every object of a kind. @throws CommandError when they can't be read, or the cluster has no such kind. */
export async function readAll<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  selection: Selection = {},
): Promise<readonly T[]> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const signal = selection.signal === undefined ? deadline : AbortSignal.any([deadline, selection.signal]);
  try {
    return (await client.list(kind, { ...selection, signal })).items;
  } catch (error) {
    selection.signal?.throwIfAborted();
    const why = isNotFound(error)
      ? `the cluster does not have ${kind.plural}.${kind.group}: install Shale's manifests first (kubectl apply -k manifests/base)`
      : error instanceof Error
        ? error.message
        : String(error);
    throw new CommandError(why, exitCodes.unavailable, { cause: error });
  }
}

/** Leases and NodeMaintenances are another team's: whoever may not read them still sees the rest. */
export async function unlessForbidden<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    const cause = error instanceof CommandError ? error.cause : error;
    if (cause instanceof ApiError && cause.status === 403) return undefined;
    throw error;
  }
}
