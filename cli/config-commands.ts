import { Command, InvalidArgumentError, Option } from 'commander';
import { stringify } from 'yaml';
import { type DisruptionAction, formatActions } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';
import type { KubernetesObject } from '../api/object.ts';
import { inWords } from '../disruption/summarise-policies.ts';
import { diffPools, formatDiffs } from './diff.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type LimitFlags, limitsOf, withLimitFlags } from './limit-flags.ts';
import {
  type ClusterFlags,
  connect,
  readLiveNodes,
  readLiveObjects,
  withClusterFlags,
} from './live-objects.ts';
import { readObjects } from './object-files.ts';
import { offlineCluster, policiesOf, problemsOf, renderOffline } from './offline-cluster.ts';
import { formatPlan, type PoolPlan, planPools, withLiveNodes } from './plan.ts';

/** Commands about MachineConfigs and policies: on files, or on what a cluster has. */

const FILES = 'files or directories with objects; - is standard input';

/** @param choices the first is for people, and the default. */
const output = (...choices: string[]) =>
  new Option('-o, --output <format>', 'how to print').choices(choices).default(choices[0]);
const TABLE = ['table', 'json', 'yaml'];

function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

function printAs(format: string, value: unknown): void {
  print(
    format === 'json' ? JSON.stringify(value, null, 2) : stringify(value, { aliasDuplicateObjects: false }),
  );
}

interface FileFlags extends ClusterFlags, LimitFlags {
  readonly filename: string[];
  readonly output: string;
}

/** The objects of files, or, where none is named, of the cluster. */
async function objectsOf(flags: FileFlags): Promise<readonly KubernetesObject[]> {
  return flags.filename.length > 0 ? readObjects(flags.filename) : readLiveObjects(await connect(flags));
}

function filesOrCluster(command: Command): Command {
  return withClusterFlags(
    command.option('-f, --filename <file...>', `${FILES}; default: what the cluster has`, []),
  );
}

interface ChangeFlags extends FileFlags {
  readonly from: string[];
}

function change(command: Command): Command {
  const changed = command
    .option('--from <file...>', 'what there is now, as files; default: what the cluster has', [])
    .addOption(new Option('-f, --filename <file...>', `what changes: ${FILES}`).makeOptionMandatory());
  return withLimitFlags(withClusterFlags(changed));
}

/** `shale validate`: exit code 0 for what is valid, 1 with every problem for what is not. */
export function validateCommand(): Command {
  const command = new Command('validate').description('Check MachineConfigs and disruption policies.');
  return filesOrCluster(command)
    .addOption(output(...TABLE))
    .action(async (flags: FileFlags) => {
      const cluster = offlineCluster(await objectsOf(flags), limitsOf(flags));
      const problems = problemsOf(cluster);
      if (flags.output !== 'table') printAs(flags.output, { valid: problems.length === 0, problems });
      else if (problems.length === 0) print(`${cluster.configs.length} MachineConfigs are valid`);
      else print(problems.join('\n'));
      if (problems.length > 0) throw new CommandError(`${problems.length} problems found`);
    });
}

/** `shale render`: the rendered MachineConfig of a pool. */
export function renderCommand(): Command {
  const command = new Command('render')
    .description("Merge a pool's MachineConfigs into its rendered config.")
    .requiredOption('--pool <name>', 'the MachineConfigPool');
  return filesOrCluster(command)
    .addOption(output('yaml', 'json', 'name'))
    .action(async (flags: FileFlags & { pool: string }) => {
      const cluster = offlineCluster(await objectsOf(flags), limitsOf(flags));
      const pool = cluster.pools.find(({ metadata }) => metadata.name === flags.pool);
      if (pool === undefined) {
        const known = cluster.pools.map(({ metadata }) => metadata.name).join(', ');
        throw new CommandError(`no pool ${flags.pool}; there are: ${known || 'none'}`);
      }
      const rendering = renderOffline(cluster, pool);
      if (!rendering.ok) {
        throw new CommandError(
          `pool ${flags.pool} can not be rendered:\n  ${rendering.problems.join('\n  ')}`,
        );
      }
      if (flags.output === 'name') print(rendering.rendered.metadata.name);
      else printAs(flags.output, rendering.rendered);
    });
}

/** What a change may cost at least to fail a pipeline, cheapest first. */
const COSTS = ['restart', 'drain', 'reboot'] as const;
type Cost = (typeof COSTS)[number];

function costOf(actions: readonly DisruptionAction[]): number {
  const rank = ({ type }: DisruptionAction) => (type === 'Reboot' ? 3 : type === 'Drain' ? 2 : 1);
  return Math.max(0, ...actions.map(rank));
}

function parseCost(text: string): Cost {
  const cost = COSTS.find((name) => name === text);
  if (cost === undefined) throw new InvalidArgumentError(`one of ${COSTS.join(', ')}`);
  return cost;
}

/** `shale plan`: what a change asks of each pool's nodes, before anything is applied. */
export function planCommand(): Command {
  const command = new Command('plan').description(
    'Say what a change asks of the nodes of each pool, and why.',
  );
  return change(command)
    .addOption(output(...TABLE))
    .option(
      '--fail-on <cost>',
      `exit with 1 when a pool's nodes have to do that or more: ${COSTS.join(', ')}`,
      parseCost,
    )
    .addHelpText(
      'after',
      '\nExamples:\n  shale plan -f new.yaml                                   what new.yaml asks of the cluster\n  shale plan --from examples -f examples/tour/karg.yaml    the same, of files alone',
    )
    .action(async (flags: ChangeFlags & { failOn?: Cost }) => {
      const plans = await planOf(flags);
      if (flags.output !== 'table') printAs(flags.output, plans);
      else print(formatPlan(plans));
      if (plans.some((plan) => 'problems' in plan)) throw new CommandError('not every pool can be rendered');
      failOn(plans, flags.failOn);
    });
}

async function planOf(flags: ChangeFlags): Promise<readonly PoolPlan[]> {
  const limits = limitsOf(flags);
  const changes = await readObjects(flags.filename);
  if (flags.from.length > 0) {
    const before = await readObjects(flags.from);
    return planPools(offlineCluster(before, limits), offlineCluster([...before, ...changes], limits));
  }
  const client = await connect(flags);
  const [before, live] = await Promise.all([readLiveObjects(client), readLiveNodes(client)]);
  return withLiveNodes(
    planPools(offlineCluster(before, limits), offlineCluster([...before, ...changes], limits)),
    live,
    Date.now(),
  );
}

function failOn(plans: readonly PoolPlan[], cost: Cost | undefined): void {
  if (cost === undefined) return;
  const least = COSTS.indexOf(cost) + 1;
  const costly = plans.filter((plan) => !('problems' in plan) && costOf(plan.actions) >= least);
  if (costly.length === 0) return;
  throw new CommandError(`--fail-on ${cost}: ${costly.map(({ pool }) => `pool ${pool}`).join(', ')}`);
}

/** `shale diff`: what changes on nodes' disks. Exit code as kubectl's: 0 nothing, 1 something, above 1 an error. */
export function diffCommand(): Command {
  const command = new Command('diff').description(
    "Show what a change does to nodes' files, units and kernel arguments.",
  );
  return change(command)
    .option('--pool <name>', 'one pool only')
    .addOption(output(...TABLE))
    .action(async (flags: ChangeFlags & { pool?: string }) => {
      const limits = limitsOf(flags);
      const changes = await readObjects(flags.filename);
      const before =
        flags.from.length > 0 ? await readObjects(flags.from) : await readLiveObjects(await connect(flags));
      const all = diffPools(offlineCluster(before, limits), offlineCluster([...before, ...changes], limits));
      const diffs = all.filter(({ pool }) => flags.pool === undefined || pool === flags.pool);
      if (flags.pool !== undefined && diffs.length === 0) {
        throw new CommandError(`no pool ${flags.pool}`, exitCodes.usage);
      }
      if (flags.output !== 'table') printAs(flags.output, diffs);
      else print(formatDiffs(diffs));
      const broken = diffs.filter((diff) => 'problems' in diff);
      if (broken.length > 0) throw new CommandError('not every pool can be rendered', exitCodes.usage);
      if (diffs.some((diff) => 'changes' in diff && diff.changes.length > 0))
        process.exitCode = exitCodes.failed;
    });
}

/** `shale policies`: the disruption policies in force. */
export function policiesCommand(): Command {
  const command = new Command('policies').description(
    'List the node disruption policies in force: the defaults and what a MachineConfiguration overrides.',
  );
  return withClusterFlags(command)
    .option('-f, --filename <file...>', 'files with the MachineConfiguration', [])
    .option('--defaults', 'the defaults alone, without a cluster')
    .addOption(output(...TABLE))
    .action(async (flags: FileFlags & { defaults?: boolean }) => {
      const objects = flags.defaults === true ? [] : await objectsOf(flags);
      const policies = policiesOf(offlineCluster(objects));
      if (flags.output === 'table') print(formatPolicies(policies));
      else printAs(flags.output, policies);
    });
}

function formatPolicies({ files = [], units = [], sshkey, imageMirrors = [] }: ClusterPolicies): string {
  const line = (
    subject: string,
    actions: readonly Parameters<typeof inWords>[0][],
    source: string | undefined,
  ) => `${subject}: ${actions.map(inWords).join(', ')}${source === undefined ? '' : "  (the admin's)"}`;
  return [
    ...files.map(({ path, actions, source }) => line(path, actions, source)),
    ...units.map(({ name, actions, source }) => line(name, actions, source)),
    ...(sshkey === undefined ? [] : [line('SSH keys', sshkey.actions, sshkey.source)]),
    ...imageMirrors.flatMap(({ kind, ...changes }) =>
      Object.entries(changes).map(([name, actions]) =>
        line(`${name} rule of an ${kind}`, actions ?? [], 'Admin'),
      ),
    ),
    `anything else: ${formatActions([{ type: 'Reboot' }])}`,
  ].join('\n');
}
