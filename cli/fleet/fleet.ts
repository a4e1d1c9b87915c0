import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { type Command, Option } from 'commander';
import { capiNames, kubeconfigOf, kubeconfigSecretName } from '../../api/cluster-api.ts';
import { errorMessage } from '../../api/error-message.ts';
import { Secrets } from '../../api/kubernetes.ts';
import { by } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { ApiError, ApiUnreachable } from '../../cluster/api-client.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { type ClusterFlags, onCluster, readAll } from '../command-line/cluster-access.ts';
import { CommandError, exitCodes, UsageError } from '../command-line/exit-codes.ts';

/** Several clusters in the place of one: `--clusters`. */
export interface FleetFlags extends ClusterFlags {
  /** A directory with kubeconfigs; true: the Secrets of a management cluster. Absent: one cluster. */
  readonly clusters?: string | true;
}

/** One of several clusters. */
export interface FleetCluster {
  /** The file of its kubeconfig without its ending, or namespace and name of its Cluster. */
  readonly cluster: string;
  /** The flags of a command on it alone. */
  readonly access: Pick<ClusterFlags, 'kubeconfig' | 'kubeconfigText' | 'context'>;
}

/** What was found out of one of several clusters; `error`: why nothing was. */
export type ClusterFinding<T> = { readonly cluster: string } & (T | { readonly error: string });

/** At a time: a fleet may have hundreds, and each is several lists. */
const CLUSTERS_AT_ONCE = 8;

/** What the names of kubeconfigs end with, and what a cluster is not called. */
const ENDINGS = /\.(ya?ml|kubeconfig|conf|config)$/;

/** @returns the command with `--clusters`, which excludes some of its flags. */
export function withClusters(command: Command, ...excluded: string[]): Command {
  return command.addOption(
    new Option(
      '--clusters [dir]',
      'several clusters: a directory with a kubeconfig for each; without a directory, the workload clusters of the management cluster (Cluster API) that the other flags name, by the Secrets with their kubeconfigs',
    ).conflicts(excluded),
  );
}

/** @returns the clusters that the flags name, in order of their names. @throws {CommandError} where there are none. */
export async function fleetOf(
  flags: FleetFlags & { readonly clusters: string | true },
): Promise<readonly FleetCluster[]> {
  const members = flags.clusters === true ? await managedBy(flags) : await filesIn(flags.clusters);
  return members.toSorted(by(({ cluster }) => cluster));
}

/** Directories of kubeconfigs also have others, such as a README: what is no kubeconfig is reported as a cluster. */
async function filesIn(dir: string): Promise<readonly FleetCluster[]> {
  const files = await readdir(dir, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOTDIR' ? 'is not a directory' : "can't be read";
    throw new UsageError(
      `--clusters: ${dir} ${error.code === 'ENOENT' ? 'does not exist' : why}; expected a directory with kubeconfigs`,
      { cause: error },
    );
  });
  const members = files
    .filter((file) => !file.name.startsWith('.') && !file.isDirectory())
    .map(({ name }) => ({
      cluster: name.replace(ENDINGS, ''),
      access: { kubeconfig: path.join(dir, name), context: undefined },
    }));
  if (members.length > 0) return members;
  throw new UsageError(`--clusters: ${dir} has no files; expected a kubeconfig for each cluster`);
}

async function managedBy(flags: ClusterFlags): Promise<readonly FleetCluster[]> {
  const secrets = await onCluster(flags, (client, signal) =>
    readAll(client, Secrets, { labelSelector: capiNames.clusterLabel, signal }),
  );
  const members = secrets.flatMap((secret) => {
    const { namespace, name, labels = {} } = secret.metadata;
    const cluster = labels[capiNames.clusterLabel] ?? '';
    const kubeconfigText = kubeconfigOf(secret);
    if (name !== kubeconfigSecretName(cluster) || kubeconfigText === undefined) return [];
    return { cluster: `${namespace}/${cluster}`, access: { kubeconfigText, context: undefined } };
  });
  if (members.length > 0) return members;
  throw new UsageError(
    `--clusters: the cluster has no Secrets with kubeconfigs of workload clusters (CLUSTER-kubeconfig with the label ${capiNames.clusterLabel}); name a directory with kubeconfigs, or the management cluster with --context`,
  );
}

/**
 * Does the same on each of several clusters. That one of them can't be read says nothing about the others.
 *
 * @param work on a cluster, with the flags of a command on it alone.
 * @returns what was found, in the order of the clusters. @throws {CommandError} when it was interrupted; what is no
 *   error of a cluster.
 */
export async function onFleet<Flags extends FleetFlags, T extends object>(
  members: readonly FleetCluster[],
  flags: Flags,
  work: (flags: Flags) => Promise<T>,
): Promise<readonly ClusterFinding<T>[]> {
  const found = new Map<string, ClusterFinding<T>>();
  await inParallel(members, CLUSTERS_AT_ONCE, async ({ cluster, access }) => {
    try {
      found.set(cluster, { cluster, ...(await work({ ...flags, ...access })) });
    } catch (error) {
      if (!isOfCluster(error)) throw error;
      found.set(cluster, { cluster, error: errorMessage(error) });
    }
  });
  return members.flatMap(({ cluster }) => found.get(cluster) ?? []);
}

function isOfCluster(error: unknown): boolean {
  if (error instanceof CommandError) return error.exitCode !== exitCodes.interrupted;
  return error instanceof ApiError || error instanceof ApiUnreachable;
}

/** @throws {CommandError} that names the clusters that could not be read, once the others are printed. */
export function failOnUnread(findings: readonly ClusterFinding<object>[]): void {
  const unread = findings.filter((finding) => 'error' in finding);
  if (unread.length === 0) return;
  throw new CommandError(
    `nothing is known of ${unread.length} of ${plural(findings.length, 'cluster')}: ${unread.map(({ cluster }) => cluster).join(', ')}`,
    exitCodes.unavailable,
  );
}
