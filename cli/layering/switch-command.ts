import { Command, Option } from 'commander';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isNotFound } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { formatProblems } from '../../opt-in/status.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import {
  type AgreementFlags,
  agreementBy,
  onTerminal,
  withAgreementFlags,
} from '../command-line/agreement.ts';
import {
  type ClusterFlags,
  onCluster,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes, noSuchPool, UsageError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { type WaitFlags, withWaitFlags } from '../command-line/quantities.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import { layeringArrival } from '../observe/layering-arrival.ts';
import { waitIfAsked } from '../observe/wait-for-arrival.ts';
import { endedRollbacks } from './ended-rollbacks.ts';
import {
  dataPatch,
  type EnableRequest,
  layeredPools,
  meaningOf,
  type SwitchData,
  switchedOff,
  switchedOn,
} from './switch-data.ts';
import { isAdmins, type SwitchDecision, switchPlan } from './switch-plan.ts';

interface SwitchFlags extends ClusterFlags, Places, WaitFlags, AgreementFlags {
  readonly pool: readonly string[];
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
        const decide = (cluster: ObservedCluster) => {
          const data = switchedOn(dataOf(cluster), request);
          return { data, goal: { layered: layeredBy(data, cluster), standard: [], clean: false } };
        };
        await switchLayering({ client, flags, resolveTags: flags.resolveTags, signal }, decide);
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
      const decide = (cluster: ObservedCluster) => {
        const data = switchedOff(dataOf(cluster), flags.pool, cluster.pools);
        const pools = poolsToRevert(flags, cluster);
        const [notBySwitch = [], standard = []] = [true, false].map((own) =>
          pools.filter((pool) => isAdmins(pool, cluster) === own),
        );
        return { data, goal: { layered: [], standard, clean: meaningOf(data).kind === 'off' }, notBySwitch };
      };
      await switchLayering({ client, flags, resolveTags: false, signal }, decide);
    }),
  );
}

/** @returns the pools that the flags name; without any, all of them. */
function poolsToRevert({ pool }: SwitchFlags, cluster: ObservedCluster): readonly string[] {
  return pool.length === 0 ? cluster.pools.map(({ metadata }) => metadata.name) : pool;
}

function withSwitchFlags(command: Command): Command {
  return withAgreementFlags(
    withWaitFlags(withLeaseNamespace(withClusterFlags(command)), 'every node of the pools runs its target'),
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
  if (state.kind === 'invalid') throw new UsageError(formatProblems(state.problems));
  return layeredPools(state, cluster.pools);
}

interface SwitchWork {
  readonly client: ApiClient;
  readonly flags: SwitchFlags;
  /** Whether registries may be asked. */
  readonly resolveTags: boolean;
  readonly signal: AbortSignal;
}

type Decide = (
  cluster: ObservedCluster,
) => Pick<SwitchDecision, 'data' | 'goal'> & Partial<Pick<SwitchDecision, 'notBySwitch'>>;

/**
 * Decides what the ConfigMap should contain, shows what that costs, and writes it; decides again when it changed in
 * between. With --wait, shows the progress of the nodes.
 */
async function switchLayering(work: SwitchWork, decide: Decide): Promise<void> {
  const { client, flags, signal } = work;
  const { namespace, leaseNamespace } = flags;
  const agree = agreementBy(flags, onTerminal(signal));
  const write = async (): Promise<SwitchDecision> => {
    const decision = await decideNow(work, decide);
    const agreement = await agree(await switchPlan({ ...work, namespace, leaseNamespace }, decision));
    if (agreement === 'lookAgain') return write();
    if (agreement === 'apply' && decision.changes) await writeSwitch(work, decision);
    return decision;
  };
  const { data, goal, changes } = await retryOnConflict(write);
  const end = flags.dryRun === true ? ' (dry run)' : '';
  const where = `ConfigMap ${namespace}/${SWITCH_CONFIG_MAP}`;
  print(`${where}: ${changes ? '' : 'unchanged, '}${formatSwitch(data)}${end}`);
  await waitIfAsked(flags, { client, look: (seen, now) => layeringArrival(goal, seen, now), signal });
}

async function decideNow({ client, flags, signal }: SwitchWork, decide: Decide): Promise<SwitchDecision> {
  const cluster = await observeCluster(client, flags, signal);
  refuseUnknownPools(flags.pool, cluster);
  const decision = decide(cluster);
  const { data } = decision;
  refuseReleasedHolds(cluster, data);
  // Without the ConfigMap layering is off.
  const changes =
    cluster.switchMap === undefined
      ? meaningOf(data).kind !== 'off'
      : dataPatch(dataOf(cluster), data) !== undefined;
  return { notBySwitch: [], ...decision, cluster, changes };
}

/** @throws {CommandError} when the change would end a rollback that holds a pool. */
function refuseReleasedHolds(cluster: ObservedCluster, to: SwitchData): void {
  const notBySwitch = (pool: string) => isAdmins(pool, cluster);
  const released = endedRollbacks(cluster.pools, { from: dataOf(cluster), to, notBySwitch });
  if (released.length > 0) throw new CommandError(released.join('\n  '));
}

/** @throws {ApiError} on a conflict. */
async function writeSwitch(
  { client, flags: { namespace }, signal }: SwitchWork,
  { cluster: { switchMap }, data }: SwitchDecision,
): Promise<void> {
  if (switchMap !== undefined) {
    const { name, resourceVersion } = switchMap.metadata;
    const body = { metadata: { resourceVersion }, data: dataPatch(switchMap.data ?? {}, data) };
    await client.patch(ConfigMaps, name, { type: 'merge', body }, { namespace, signal });
    return;
  }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SWITCH_CONFIG_MAP }, data };
  await client.create(ConfigMaps, object, { namespace, signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    throw new CommandError(
      `namespace ${namespace} does not exist: install Shale's manifests first (kubectl apply -k manifests/base)`,
      exitCodes.unavailable,
      { cause: error },
    );
  });
}

function formatSwitch(data: SwitchData): string {
  const state = meaningOf(data);
  if (state.kind !== 'on') return 'layering is disabled';
  const { pools, imageRepository } = state.settings;
  const selector = data['poolSelector'] === undefined ? [] : [`pools that match ${data['poolSelector']}`];
  const which = [...(pools ?? []), ...selector].join(', ') || 'all pools';
  return `layering is enabled for ${which}; images are pushed to ${imageRepository}`;
}
