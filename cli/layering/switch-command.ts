import { Command, Option } from 'commander';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isNotFound, isTemporary } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { madeBySwitch } from '../../opt-in/machine-os-configs.ts';
import { formatProblems } from '../../opt-in/status.ts';
import {
  type ClusterFlags,
  onCluster,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes, noSuchPool } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { type WaitFlags, withWaitFlags } from '../command-line/quantities.ts';
import { observeCluster } from '../observe/cluster-watch.ts';
import { type LayeringGoal, layeringArrival } from '../observe/layering-arrival.ts';
import { nodesOfPool, type ObservedCluster, obstaclesOf } from '../observe/observed-cluster.ts';
import { waitForArrival } from '../observe/wait-for-arrival.ts';
import { plannedImages } from './planned-images.ts';
import { releasedHolds } from './rollback-holds.ts';
import {
  dataPatch,
  type EnableRequest,
  layeredPools,
  meaningOf,
  type SwitchData,
  switchedOff,
  switchedOn,
} from './switch-data.ts';
import { secretWarnings, standardModeWarnings } from './switch-warnings.ts';
import { formatWay } from './way.ts';

interface SwitchFlags extends ClusterFlags, WaitFlags {
  readonly pool: readonly string[];
  readonly leaseNamespace: string;
}

type EnableFlags = SwitchFlags &
  EnableRequest['settings'] & { readonly allPools?: boolean; readonly resolveTags: boolean };

const ENABLE_EXAMPLES = `
Examples:
  shale enable --image-repository r.example.com/os/{pool} --push-secret push   every pool
  shale enable --pool worker --wait                                            one more pool; waits for its nodes
  shale enable                                                                 with the settings from before 'shale disable'`;

/** `shale enable`: enables layering, by the ConfigMap that an admin could write as well. */
export function enableCommand(): Command {
  const command = new Command('enable')
    .option(
      '--pool <name...>',
      'pools to layer, in addition to those that are layered; default: the same pools as before, at first all',
      [],
    )
    .option('--all-pools', 'layer every pool, including pools that are created later')
    .option(
      '--image-repository <repository>',
      'where to push images: host[:port]/repository; {pool} is replaced by the name of the pool',
    )
    .option('--push-secret <name>', 'Secret with the credentials for pushing images')
    .option('--pull-secret <name>', 'Secret with the credentials for pulling base images')
    .option('--base-image <image>', 'base image for pools whose MachineConfigs set no osImageURL')
    .addOption(
      new Option(
        '--signing <policy>',
        'required: nodes stage only images that the cluster signed; disabled: images are not signed',
      ).choices(['required', 'disabled']),
    )
    .option('--no-resolve-tags', 'ask no registry whether the nodes have booted the base image');
  return withSwitchFlags(command)
    .addHelpText('after', ENABLE_EXAMPLES)
    .action((flags: EnableFlags) =>
      onCluster(flags, async (client, signal) => {
        const { pool: pools, allPools = false } = flags;
        const request = { pools, allPools, settings: settingsOf(flags) };
        const written = await switchLayering(client, flags, signal, (cluster) => {
          const data = switchedOn(dataOf(cluster), request);
          return { data, goal: { layered: layeredBy(data, cluster), standard: [], clean: false } };
        });
        const secrets = [written.data['pushSecret'], written.data['pullSecret']];
        for (const line of await secretWarnings(client, flags.namespace, secrets, signal)) warn(line);
        await report(client, flags, written, signal, flags.resolveTags);
      }),
    );
}

/** `shale disable`: disables layering for all pools or for some. */
export function disableCommand(): Command {
  const command = new Command('disable').option(
    '--pool <name...>',
    'pools to return to the stock image; default: all',
    [],
  );
  return withSwitchFlags(command).action((flags: SwitchFlags) =>
    onCluster(flags, async (client, signal) => {
      const written = await switchLayering(client, flags, signal, (cluster) => {
        const data = switchedOff(dataOf(cluster), flags.pool, cluster.pools);
        const standard = poolsToRevert(flags, cluster).filter((pool) => !isAdmins(pool, cluster));
        return { data, goal: { layered: [], standard, clean: meaningOf(data).kind === 'off' } };
      });
      const { cluster, goal } = written;
      for (const pool of poolsToRevert(flags, cluster).filter((name) => isAdmins(name, cluster))) {
        warn(
          `pool ${pool} stays layered: its MachineOSConfig was created by hand; delete it to return the pool to standard mode`,
        );
      }
      const warnings = standardModeWarnings(client, cluster, goal.standard, signal);
      for (const line of await warnings.catch(notPredicted)) warn(line);
      await report(client, flags, written, signal);
    }),
  );
}

/** @returns the pools that the flags name; without any, all of them. */
function poolsToRevert({ pool }: SwitchFlags, cluster: ObservedCluster): readonly string[] {
  return pool.length === 0 ? cluster.pools.map(({ metadata }) => metadata.name) : pool;
}

function withSwitchFlags(command: Command): Command {
  return withWaitFlags(
    withLeaseNamespace(withClusterFlags(command)),
    'every node of the pools runs its target',
  );
}

function settingsOf(flags: EnableFlags): EnableRequest['settings'] {
  const { imageRepository, pushSecret, pullSecret, baseImage, signing } = flags;
  return {
    ...present({ imageRepository, pushSecret, pullSecret, baseImage, signing }),
  };
}

function dataOf({ switchMap }: ObservedCluster): SwitchData {
  return switchMap?.data ?? {};
}

function refuseUnknownPools(pools: readonly string[], cluster: ObservedCluster): void {
  const known = cluster.pools.map(({ metadata }) => metadata.name);
  const unknown = pools.filter((pool) => !known.includes(pool));
  if (unknown.length === 0) return;
  throw noSuchPool(unknown.join(', '), known);
}

/** @returns the pools to layer. @throws {CommandError} when the operator would reject the data. */
function layeredBy(data: SwitchData, cluster: ObservedCluster): readonly string[] {
  const state = meaningOf(data);
  if (state.kind === 'invalid') throw new CommandError(formatProblems(state.problems), exitCodes.usage);
  return layeredPools(state, cluster.pools);
}

function isAdmins(pool: string, { machineOSConfigs }: ObservedCluster): boolean {
  return machineOSConfigs.some(
    (config) => config.spec.machineConfigPool.name === pool && !madeBySwitch(config),
  );
}

/** What a command decides from the current state of the cluster. */
interface SwitchDecision {
  readonly data: SwitchData;
  readonly goal: LayeringGoal;
}

interface WrittenSwitch extends SwitchDecision {
  readonly cluster: ObservedCluster;
  /** Whether there was anything to write. */
  readonly changed: boolean;
}

/** Decides what the ConfigMap should contain and writes it; decides again when it changed in between. */
function switchLayering(
  client: ApiClient,
  flags: SwitchFlags,
  signal: AbortSignal,
  decide: (cluster: ObservedCluster) => SwitchDecision,
): Promise<WrittenSwitch> {
  return retryOnConflict(async () => {
    const cluster = await observeCluster(client, flags, signal);
    refuseUnknownPools(flags.pool, cluster);
    const decision = decide(cluster);
    refuseReleasedHolds(cluster, decision.data);
    const changed = await writeSwitch(client, flags.namespace, cluster, decision.data, signal);
    return { ...decision, cluster, changed };
  });
}

/** @throws {CommandError} when the change would end a rollback that holds a pool. */
function refuseReleasedHolds(cluster: ObservedCluster, to: SwitchData): void {
  const notBySwitch = (pool: string) => isAdmins(pool, cluster);
  const released = releasedHolds(cluster.pools, { from: dataOf(cluster), to, notBySwitch });
  if (released.length > 0) throw new CommandError(released.join('\n  '));
}

/** Prints what was written, what delays it and, with --wait, the progress of the nodes. */
async function report(
  client: ApiClient,
  flags: SwitchFlags,
  { cluster, data, goal, changed }: WrittenSwitch,
  signal: AbortSignal,
  resolveTags = false,
): Promise<void> {
  const pools = [...goal.layered, ...goal.standard];
  for (const line of obstaclesOf(cluster, pools, Date.now())) warn(line);
  for (const { metadata, spec } of cluster.pools) {
    if (spec.paused === true && pools.includes(metadata.name)) {
      warn(`pool ${metadata.name} is paused: its nodes do not switch until it is resumed`);
    }
  }
  if ((cluster.operator?.status?.availableReplicas ?? 0) === 0) {
    warn(`no operator is running in namespace ${flags.namespace}: nothing changes until one is running`);
  }
  const where = `ConfigMap ${flags.namespace}/${SWITCH_CONFIG_MAP}`;
  print(`${where}: ${changed ? '' : 'unchanged, '}${formatSwitch(data)}`);
  const { namespace } = flags;
  const images = await plannedImages(
    { client, namespace, resolveTags, signal },
    goal.layered,
    data,
    cluster,
  ).catch(notPredicted);
  for (const why of images.flatMap(({ unknown }) => unknown ?? [])) warn(why);
  for (const pool of pools) {
    const to = images.find(({ name }) => name === pool)?.image;
    print(`  pool ${pool}: ${formatWay(nodesOfPool(cluster, pool), goal.layered.includes(pool), to)}`);
  }
  if (flags.wait !== true) return;
  const { timeout } = flags;
  const look = (now: ObservedCluster) => layeringArrival(goal, now);
  await waitForArrival({ client, places: flags, look, timeout, output: process.stderr, signal });
  print('done');
}

/** The switch is written, and the nodes follow it, whether or not their way is known beforehand. */
function notPredicted(error: unknown): readonly [] {
  if (!isTemporary(error)) throw error;
  warn(
    `what the nodes will do can't be predicted: ${error instanceof Error ? error.message : String(error)}`,
  );
  return [];
}

/** @returns whether there was anything to write. @throws {ApiError} on a conflict. */
async function writeSwitch(
  client: ApiClient,
  namespace: string,
  { switchMap }: ObservedCluster,
  data: SwitchData,
  signal: AbortSignal,
): Promise<boolean> {
  const patch = dataPatch(switchMap?.data ?? {}, data);
  if (switchMap !== undefined) {
    if (patch === undefined) return false;
    const { name, resourceVersion } = switchMap.metadata;
    const body = { metadata: { resourceVersion }, data: patch };
    await client.patch(ConfigMaps, name, { type: 'merge', body }, { namespace, signal });
    return true;
  }
  // Without the ConfigMap layering is off.
  if (meaningOf(data).kind === 'off') return false;
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SWITCH_CONFIG_MAP }, data };
  await client.create(ConfigMaps, object, { namespace, signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    throw new CommandError(
      `namespace ${namespace} does not exist: install Shale's manifests first (kubectl apply -k manifests/base)`,
      exitCodes.unavailable,
      { cause: error },
    );
  });
  return true;
}

function formatSwitch(data: SwitchData): string {
  const state = meaningOf(data);
  if (state.kind !== 'on') return 'layering is disabled';
  const { pools, imageRepository } = state.settings;
  const selector = data['poolSelector'] === undefined ? [] : [`pools that match ${data['poolSelector']}`];
  const which = [...(pools ?? []), ...selector].join(', ') || 'all pools';
  return `layering is enabled for ${which}; images are pushed to ${imageRepository}`;
}

function warn(text: string): void {
  process.stderr.write(`warning: ${text}\n`);
}
