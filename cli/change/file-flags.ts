import { type Command, Option } from 'commander';
import type { KubernetesObject } from '../../api/object.ts';
import {
  changedCluster,
  formatObjectProblem,
  type OfflineCluster,
  offlineCluster,
} from '../../predict/objects/offline-cluster.ts';
import { type LimitFlags, limitsOf, withLimitFlags } from '../../rollout/limit-flags.ts';
import { type ClusterFlags, connect, withClusterFlags } from '../command-line/cluster-access.ts';
import { UsageError } from '../command-line/exit-codes.ts';
import { type LiveCluster, readLiveCluster } from './live-cluster.ts';
import { readObjects } from './object-files.ts';
import { withSwitch } from './switched-cluster.ts';

/** Flags of commands about MachineConfigs: which files, or which cluster. */
export interface FileFlags extends ClusterFlags, LimitFlags {
  readonly filename: readonly string[];
  readonly output: string;
}

const FILES = 'files or directories with objects, or - for standard input';

/** @returns the command with `-f` and the flags of a cluster, which is used when no file is named. */
export function withFilesOrCluster(command: Command): Command {
  const files = command.option(
    '-f, --filename <file...>',
    `${FILES}; default: the objects of the cluster`,
    [],
  );
  return withLimitFlags(withClusterFlags(files));
}

/** @returns the objects of the files or, when none is named, of the cluster. @throws {CommandError} */
export async function objectsOf(flags: FileFlags): Promise<readonly KubernetesObject[]> {
  if (flags.filename.length > 0) return readObjects(flags.filename);
  return (await readLiveCluster(await connect(flags), undefined, flags.namespace)).objects;
}

/** Flags of commands about a change. */
export interface ChangeFlags extends FileFlags {
  readonly from: readonly string[];
  readonly prune?: boolean;
  readonly leaseNamespace?: string;
}

/** @returns the command with the flags that name a change and the state before it. */
export function withChange(command: Command): Command {
  const changed = command
    .option('--from <file...>', 'files with the current state; default: the state of the cluster', [])
    .addOption(new Option('-f, --filename <file...>', `the change: ${FILES}`).default([], 'none'))
    .option(
      '--prune',
      'treat the files as the complete new state: objects that they do not contain are deleted',
    );
  return withLimitFlags(withClusterFlags(changed));
}

/** A cluster before and after a change. */
export interface Change {
  readonly before: OfflineCluster;
  readonly after: OfflineCluster;
  /** The cluster that `before` was read from; undefined when it was read from files. */
  readonly live: LiveCluster | undefined;
}

/**
 * Reads what the flags name.
 *
 * @throws {CommandError} when something can't be read or is malformed, and when there is no pool at all: an empty
 *   output would mean "nothing changes".
 */
export async function readChangeFlags(flags: ChangeFlags): Promise<Change> {
  const limits = limitsOf(flags);
  const changes = await readObjects(flags.filename);
  const live =
    flags.from.length > 0
      ? undefined
      : await readLiveCluster(await connect(flags), flags.leaseNamespace, flags.namespace);
  const objects = live?.objects ?? (await readObjects(flags.from));
  const reading = { limits, isLive: live !== undefined };
  const before = withSwitch(offlineCluster(objects, reading), objects);
  const changed = changedCluster(objects, changes, { prune: flags.prune === true, ...reading });
  const after = withSwitch(changed, [...objects, ...changes]);
  refuseMalformed(before, after);
  if (before.pools.length === 0 && after.pools.length === 0) {
    const expected =
      live === undefined
        ? 'a MachineConfigPool, or a MachineConfig with the label machineconfiguration.openshift.io/role'
        : 'a MachineConfigPool in the cluster or in the change';
    throw new UsageError(`no pool found: expected ${expected}`);
  }
  return { before, after, live };
}

/** @throws {CommandError} that names every malformed object once. */
export function refuseMalformed(...clusters: readonly OfflineCluster[]): void {
  const problems = new Set(clusters.flatMap(({ malformed }) => malformed.map(formatObjectProblem)));
  if (problems.size > 0) throw new UsageError([...problems].join('\n'));
}
