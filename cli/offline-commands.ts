import { Command, Option } from 'commander';
import { stringify } from 'yaml';
import { formatActions } from '../api/disruption-action.ts';
import { CommandError } from './exit-codes.ts';
import { readObjects } from './object-files.ts';
import {
  type OfflineCluster,
  offlineCluster,
  policiesOf,
  problemsOf,
  renderOffline,
} from './offline-cluster.ts';
import { formatPlan, planPools } from './plan.ts';

const files = () =>
  new Option(
    '-f, --filename <file...>',
    'files or directories with objects; - is standard input',
  ).makeOptionMandatory();
const output = (...choices: string[]) =>
  new Option('-o, --output <format>', 'how to print').choices(choices).default(choices[0]);

async function read(names: readonly string[]): Promise<OfflineCluster> {
  return offlineCluster(await readObjects(names));
}

function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

function printAs(format: string, value: unknown): void {
  print(format === 'json' ? JSON.stringify(value, null, 2) : stringify(value));
}

/** `shale validate`: exit code 0 for valid files, 1 with every problem for others. */
export function validateCommand(): Command {
  return new Command('validate')
    .description('Check MachineConfigs and disruption policies in files.')
    .addOption(files())
    .addOption(output('text', 'json'))
    .action(async (options: { filename: string[]; output: string }) => {
      const cluster = await read(options.filename);
      const problems = problemsOf(cluster);
      if (options.output === 'json') printAs('json', { valid: problems.length === 0, problems });
      else if (problems.length === 0) print(`${cluster.configs.length} MachineConfigs are valid`);
      else print(problems.join('\n'));
      if (problems.length > 0) throw new CommandError(`${problems.length} problems found`);
    });
}

/** `shale render`: the rendered MachineConfig of a pool. */
export function renderCommand(): Command {
  return new Command('render')
    .description("Merge a pool's MachineConfigs into its rendered config.")
    .requiredOption('--pool <name>', 'the MachineConfigPool')
    .addOption(files())
    .addOption(output('yaml', 'json', 'name'))
    .action(async (options: { pool: string; filename: string[]; output: string }) => {
      const cluster = await read(options.filename);
      const pool = cluster.pools.find(({ metadata }) => metadata.name === options.pool);
      if (pool === undefined) {
        const known = cluster.pools.map(({ metadata }) => metadata.name).join(', ');
        throw new CommandError(`no pool ${options.pool} in these files; there are: ${known || 'none'}`);
      }
      const rendering = renderOffline(cluster, pool);
      if (!rendering.ok)
        throw new CommandError(
          `pool ${options.pool} can not be rendered:\n  ${rendering.problems.join('\n  ')}`,
        );
      if (options.output === 'name') print(rendering.rendered.metadata.name);
      else printAs(options.output, rendering.rendered);
    });
}

/** `shale plan`: what a change asks of each pool's nodes, before anything is applied. */
export function planCommand(): Command {
  return new Command('plan')
    .description('Say what a change asks of the nodes of each pool, and why.')
    .option('--from <file...>', 'what the cluster has now', [])
    .addOption(files())
    .addOption(output('text', 'json'))
    .addHelpText('after', '\nExample:\n  shale plan --from examples -f examples/tour/chrony-v2.yaml')
    .action(async (options: { from: string[]; filename: string[]; output: string }) => {
      const before = await readObjects(options.from);
      const after = [...before, ...(await readObjects(options.filename))];
      const plans = planPools(offlineCluster(before), offlineCluster(after));
      if (options.output === 'json') printAs('json', plans);
      else print(formatPlan(plans));
      if (plans.some((plan) => 'problems' in plan)) throw new CommandError('not every pool can be rendered');
    });
}

/** `shale policies`: the disruption policies in force. */
export function policiesCommand(): Command {
  return new Command('policies')
    .description(
      'List the node disruption policies in force: the defaults and what a MachineConfiguration overrides.',
    )
    .addOption(new Option('-f, --filename <file...>', 'files with the MachineConfiguration').default([]))
    .addOption(output('text', 'json', 'yaml'))
    .action(async (options: { filename: string[]; output: string }) => {
      const policies = policiesOf(await read(options.filename));
      if (options.output !== 'text') {
        printAs(options.output, policies);
        return;
      }
      const line = (
        subject: string,
        actions: readonly {
          type: string;
          reload?: { serviceName: string };
          restart?: { serviceName: string };
        }[],
      ) =>
        `${subject}: ${actions
          .map(({ type, reload, restart }) => {
            const service = reload?.serviceName ?? restart?.serviceName;
            return service === undefined ? type : `${type}(${service})`;
          })
          .join(', ')}`;
      print(
        [
          ...(policies.files ?? []).map(({ path, actions }) => line(path, actions)),
          ...(policies.units ?? []).map(({ name, actions }) => line(name, actions)),
          ...(policies.sshkey === undefined ? [] : [line('SSH keys', policies.sshkey.actions)]),
          `anything else: ${formatActions([{ type: 'Reboot' }])}`,
        ].join('\n'),
      );
    });
}
