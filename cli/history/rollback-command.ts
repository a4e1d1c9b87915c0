import { Command } from 'commander';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { formatDriver } from '../../api/machine-owner.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { predictRollback } from '../../predict/rollback-prediction.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { obstaclesOf } from '../../view/obstacles.ts';
import {
  type Agreement,
  type AgreementFlags,
  agreementBy,
  onTerminal,
  type Plan,
  withAgreementFlags,
} from '../command-line/agreement.ts';
import {
  type ClusterFlags,
  onCluster,
  unlessForbidden,
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes, poolNamed, UsageError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { type WaitFlags, withWaitFlags } from '../command-line/quantities.ts';
import { annotate } from '../node-request.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import { type Arrival, poolsArrival, rollbackArrival } from '../observe/pool-arrival.ts';
import { TAKEN_UP_MS, waitIfAsked } from '../observe/wait-for-arrival.ts';
import { readHistory } from './history-command.ts';
import { type HistoryInput, rollbackHistory } from './pool-history.ts';
import { type RollbackTarget, rollbackTarget } from './rollback-target.ts';
import { formatPrediction, mayDisrupt } from './rollback-text.ts';

interface RollbackFlags extends ClusterFlags, Places, WaitFlags, AgreementFlags {
  readonly to?: string;
  readonly reason?: string;
  readonly clear?: boolean;
}

const EXAMPLES = `
Examples:
  shale rollback worker --reason 'web is slow'   to what its nodes ran before
  shale rollback worker --to 3 --wait            to the revision of that number in shale history
  shale rollback worker --clear                  follow its MachineConfigs again`;

/** `shale rollback`: rolls a pool back to what it ran before, and holds it there. */
export function rollbackCommand(): Command {
  const command = new Command('rollback')
    .argument('<pool>')
    .option(
      '--to <revision|image|config>',
      'target: the number of a revision (shale history), an image by digest, a MachineOSBuild or a rendered config, or a unique beginning of one; default: the previous one',
    )
    .option('--reason <text>', 'reason, shown with the pool', '')
    .option('--clear', 'end the rollback: the pool follows its MachineConfigs again');
  return withAgreementFlags(
    withWaitFlags(withLeaseNamespace(withClusterFlags(command)), 'every node of the pool runs its target'),
  )
    .addHelpText('after', EXAMPLES)
    .action((pool: string, flags: RollbackFlags) =>
      onCluster(flags, (client, signal) =>
        flags.clear === true ? clear(client, pool, flags, signal) : rollBack(client, pool, flags, signal),
      ),
    );
}

async function rollBack(
  client: ApiClient,
  name: string,
  flags: RollbackFlags,
  signal: AbortSignal,
): Promise<void> {
  const agree = agreementBy(flags, onTerminal(signal));
  const request = async (): Promise<RollbackTarget> => {
    const { known, target, prediction } = await decideTarget(client, name, flags, signal);
    const { pool } = known;
    const agreement = await agree(rollbackPlan(known, target, prediction));
    if (agreement === 'lookAgain') return request();
    if (agreement === 'apply') {
      const by = await whoAmI(client, signal);
      const at = toSeconds(new Date());
      const { reason = '' } = flags;
      const text = JSON.stringify({ ...target, by, reason, at });
      await annotate(client, MachineConfigPools, pool, { [annotations.rollback]: text }, signal);
    }
    return target;
  };
  const target = await retryOnConflict(request);
  await finish(client, flags, (seen, now) => rollbackArrival(name, target, seen, now), signal);
}

/**
 * @returns what nodes of a pool do if it is rolled back to a target. @throws {CommandError} when the pool doesn't
 * exist.
 */
export async function planOfRollback(
  client: ApiClient,
  name: string,
  { target, places }: { readonly target: RollbackTarget; readonly places: Places },
  signal: AbortSignal,
): Promise<Plan> {
  const known = await readKnownPool(client, { name, places }, signal);
  return rollbackPlan(known, target, await predict(client, known, target, signal));
}

/** A pool that exists, with its history. */
interface KnownPool extends HistoryInput {
  readonly pool: MachineConfigPool;
  /** The nodes that a rollback skips, and why it doesn't start; one line each. */
  readonly warnings: readonly string[];
}

/** @throws {CommandError} when the pool doesn't exist. */
async function readKnownPool(
  client: ApiClient,
  { name, places }: { readonly name: string; readonly places: Places },
  signal: AbortSignal,
): Promise<KnownPool> {
  const [input, observed] = await Promise.all([
    readHistory(client, name, signal),
    observeCluster(client, places, signal),
  ]);
  const pool = input.pool ?? poolNamed(observed.pools, name);
  const isPaused = pool.spec.paused === true;
  const paused = `pool ${name} is paused: its nodes do not roll back until it is resumed`;
  const owner = settingOf(pool, 'drivenBy');
  const driven =
    owner &&
    `${formatDriver(owner)} decides when nodes are updated: its nodes do not roll back until it hands them over`;
  const warnings = [
    ...(isPaused ? [paused] : []),
    ...(driven ? [driven] : []),
    ...obstaclesOf(observed, [name], Date.now()),
  ];
  return { ...input, pool, warnings };
}

function rollbackPlan(
  { name, warnings }: KnownPool,
  { config, image }: RollbackTarget,
  { lines, disrupts }: Prediction,
): Plan {
  return {
    warnings,
    lines: [
      `pool ${name}: rolling back to ${config}${image === undefined ? '' : ` (${image})`}`,
      ...lines,
      `  held there until its MachineConfigs change or you run: shale rollback ${name} --clear`,
    ],
    disrupts,
  };
}

/**
 * Decides what a pool rolls back to. During a rollout the operator writes the pool's status every few seconds, so that
 * a conflict is common when this is written to the pool.
 *
 * @throws {CommandError} when there is no such target.
 */
async function decideTarget(client: ApiClient, name: string, flags: RollbackFlags, signal: AbortSignal) {
  const { to } = flags;
  const known = await readKnownPool(client, { name, places: flags }, signal);
  const machineOSConfig = await client.find(MachineOSConfigs, name, { signal });
  const { pool } = known;
  const target = rollbackTarget({
    history: rollbackHistory(known),
    wanted: pool.spec.configuration?.name,
    running: pool.status?.configuration?.name,
    layered: machineOSConfig !== undefined,
    to,
  });
  if (typeof target === 'string') {
    throw new CommandError(`pool ${name}: ${target}`, to === undefined ? exitCodes.failed : exitCodes.usage);
  }
  return { known, target, prediction: await predict(client, known, target, signal) };
}

/** Ends a command whose plan was shown, and carried out unless it was a dry run; with --wait, shows the progress. */
async function finish(
  client: ApiClient,
  flags: RollbackFlags,
  look: (cluster: ObservedCluster, now: number) => Arrival,
  signal: AbortSignal,
): Promise<void> {
  if (flags.dryRun === true) print('no changes were made (dry run)');
  await waitIfAsked(flags, { client, look, holds: TAKEN_UP_MS, signal });
}

async function clear(
  client: ApiClient,
  name: string,
  flags: RollbackFlags,
  signal: AbortSignal,
): Promise<void> {
  if (flags.to !== undefined) throw new UsageError("rollback: --clear can't be combined with --to");
  const agree = agreementBy(flags, onTerminal(signal));
  const release = async (): Promise<Agreement> => {
    const known = await readKnownPool(client, { name, places: flags }, signal);
    const { pool, warnings } = known;
    if (pool.metadata.annotations?.[annotations.rollback] === undefined) {
      print(`pool ${name}: there is no rollback to clear`);
      return 'apply';
    }
    const { lines, disrupts } = await predictOwn(client, known, signal);
    const target = pool.spec.configuration?.name ?? 'nothing yet';
    const first = `pool ${name}: updating to what its MachineConfigs specify: ${target}`;
    const agreement = await agree({ warnings, lines: [first, ...lines], disrupts });
    if (agreement === 'lookAgain') return release();
    if (agreement === 'apply')
      await annotate(client, MachineConfigPools, pool, { [annotations.rollback]: null }, signal);
    return agreement;
  };
  await retryOnConflict(release);
  await finish(client, flags, (seen, now) => poolsArrival([name], seen, now), signal);
}

/** What nodes do, one line for each group of them, and whether they are, or may be, drained or rebooted. */
type Prediction = Pick<Plan, 'lines' | 'disrupts'>;

/** Where it is not known what nodes do, they may reboot. */
const unpredicted: Prediction = { lines: [], disrupts: true };

/** @returns what nodes do to reach the target; no lines where the policies in force are unknown. */
async function predict(
  client: ApiClient,
  { builds, machineConfigs, machineConfigNodes, name }: HistoryInput,
  { config, image }: RollbackTarget,
  signal: AbortSignal,
): Promise<Prediction> {
  const configuration = await unlessForbidden(
    client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal }),
  );
  const { policies } = policiesOfPool(configuration?.status, name) ?? {};
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === name);
  const build = own.find(({ status }) => image !== undefined && status?.digestedImagePushSpec === image);
  if (policies === undefined || (image !== undefined && build === undefined)) return unpredicted;
  const nodes = machineConfigNodes.filter(({ spec }) => spec.pool.name === name);
  const groups = predictRollback({ config, build, nodes, machineConfigs, policies });
  return { lines: formatPrediction(groups), disrupts: mayDisrupt(groups) };
}

/** @returns what nodes do to reach what the pool's MachineConfigs specify; no lines while its image is not built. */
async function predictOwn(client: ApiClient, input: KnownPool, signal: AbortSignal): Promise<Prediction> {
  const { name, pool } = input;
  const config = pool.spec.configuration?.name;
  const machineOSConfig = await client.find(MachineOSConfigs, name, { signal });
  if (config === undefined) return unpredicted;
  if (machineOSConfig === undefined) return predict(client, input, { config }, signal);
  const named = machineOSConfig.status?.machineOSBuild?.name;
  const build = input.builds.find(({ metadata }) => metadata.name === named);
  const image = build?.status?.digestedImagePushSpec;
  return build?.spec.machineConfig.name === config && image !== undefined
    ? predict(client, input, { config, image }, signal)
    : unpredicted;
}
