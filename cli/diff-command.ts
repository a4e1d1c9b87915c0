import { stat } from 'node:fs/promises';
import { Command } from 'commander';
import { type MachineConfig, MachineConfigs } from '../api/machine-config.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { type ConfigDiff, diffConfigs, diffPools, formatDiffs, type PoolDiff } from './diff.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type ChangeFlags, readChange, withChange } from './file-flags.ts';
import { limitsOf } from './limit-flags.ts';
import { connect, readLiveCluster } from './live-objects.ts';
import { readObjects } from './object-files.ts';
import { shapeOf } from './object-shape.ts';
import { DiffOutput } from './output-schemas.ts';
import { asRendered, asRunning } from './pool-change.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from './print.ts';

interface DiffFlags extends ChangeFlags {
  readonly pool?: string;
  readonly running?: boolean;
}

const EXAMPLES = `
Examples:
  shale diff -f new.yaml                              what new.yaml changes on the cluster's nodes
  shale diff --from old/ -f new/ --prune              the same of files alone
  shale diff --running --pool worker                  what MachineConfigs ask of nodes that these do not run yet
  shale diff rendered-worker-1f3c rendered-worker-9b   two MachineConfigs of the cluster, or of files named by -f
  shale diff was.yaml will-be.yaml                    two MachineConfigs, each in a file of its own`;

/** `shale diff`: what changes on nodes' disks. Exit code as kubectl's: 0 nothing, 1 something, above 1 an error. */
export function diffCommand(): Command {
  const command = new Command('diff')
    .description("Show what a change does to nodes' files, units and kernel arguments.")
    .argument('[config...]', 'two MachineConfigs to compare, by name or by file');
  return withChange(command)
    .option('--pool <name>', 'one pool only')
    .option(
      '--running',
      "compare with what the pools' nodes run, not with what the MachineConfigs ask of them",
    )
    .addOption(outputFlag(...TABLE_FORMATS, 'text'))
    .addHelpText('after', EXAMPLES)
    .action(async (named: readonly string[], flags: DiffFlags) => {
      const diffs = named.length > 0 ? [await diffNamed(named, flags)] : await diffChange(flags);
      if (flags.output === 'json' || flags.output === 'yaml') printAs(flags.output, DiffOutput, diffs);
      else print(formatDiffs(diffs));
      if (diffs.some((diff) => 'problems' in diff)) {
        throw new CommandError('not every pool can be rendered', exitCodes.usage);
      }
      if (diffs.some((diff) => 'changes' in diff && diff.changes.length > 0)) {
        process.exitCode = exitCodes.failed;
      }
    });
}

async function diffChange(flags: DiffFlags): Promise<readonly PoolDiff[]> {
  if (flags.filename.length === 0 && flags.running !== true) {
    throw new CommandError(
      'diff: what changes? name files by -f, two MachineConfigs, or --running',
      exitCodes.usage,
    );
  }
  const { before, after, live } = await readChange(flags);
  if (flags.running === true && live === undefined) {
    throw new CommandError('diff: --running is about a cluster; it goes without --from', exitCodes.usage);
  }
  const from =
    flags.running === true && live !== undefined ? asRunning(before, live.rendered) : asRendered(before);
  const all = diffPools(from, after);
  const diffs = all.filter(({ pool }) => flags.pool === undefined || pool === flags.pool);
  if (diffs.length > 0) return diffs;
  const known = all.map(({ pool }) => pool).join(', ');
  throw new CommandError(`no pool ${flags.pool}; there are: ${known}`, exitCodes.usage);
}

async function diffNamed(named: readonly string[], flags: DiffFlags): Promise<ConfigDiff> {
  const [from, to, ...more] = named;
  if (from === undefined || to === undefined || more.length > 0) {
    throw new CommandError(`diff: expected two MachineConfigs, not ${named.length}`, exitCodes.usage);
  }
  if (flags.pool !== undefined || flags.running === true || flags.from.length > 0 || flags.prune === true) {
    throw new CommandError(
      'diff: --pool, --running, --from and --prune are about pools; two MachineConfigs are named',
      exitCodes.usage,
    );
  }
  const [a, b] = await Promise.all([isFile(from), isFile(to)]);
  const others = a && b ? [] : await namedConfigs(flags);
  const [before, after] = [
    nodeConfigOf(a ? await onlyConfigOf(from) : byName(others, from), flags),
    nodeConfigOf(b ? await onlyConfigOf(to) : byName(others, to), flags),
  ];
  return { from, to, changes: diffConfigs(before, after) };
}

async function isFile(name: string): Promise<boolean> {
  return (await stat(name).catch(() => undefined))?.isFile() === true;
}

/** @returns the MachineConfigs of `-f`, or, where no file is named, of the cluster, rendered ones included. */
async function namedConfigs(flags: DiffFlags): Promise<readonly MachineConfig[]> {
  if (flags.filename.length > 0) return machineConfigs(await readObjects(flags.filename));
  const live = await readLiveCluster(await connect(flags));
  return [...machineConfigs(live.objects), ...live.rendered.values()];
}

function machineConfigs(objects: readonly KubernetesObject[]): readonly MachineConfig[] {
  return objects.filter(({ kind }) => kind === MachineConfigs.kind) as MachineConfig[];
}

async function onlyConfigOf(file: string): Promise<MachineConfig> {
  const [config, ...more] = machineConfigs(await readObjects([file]));
  if (config !== undefined && more.length === 0) return config;
  throw new CommandError(
    `${file}: has ${config === undefined ? 'no MachineConfig' : `${more.length + 1} MachineConfigs`}; expected one`,
    exitCodes.usage,
  );
}

function byName(configs: readonly MachineConfig[], name: string): MachineConfig {
  const config = configs.findLast(({ metadata }) => metadata.name === name);
  if (config !== undefined) return config;
  throw new CommandError(`no MachineConfig ${name}, and no such file`, exitCodes.usage);
}

function nodeConfigOf(config: MachineConfig, flags: DiffFlags): NodeConfig {
  const { problems } = shapeOf(config);
  if (problems.length > 0) throw new CommandError(problems.join('\n'), exitCodes.usage);
  const parsed = parseNodeConfig(config, limitsOf(flags));
  if (parsed.ok) return parsed.config;
  const lines = parsed.problems.map(
    (problem) => `MachineConfig ${config.metadata.name}: ${formatProblem(problem)}`,
  );
  throw new CommandError(lines.join('\n'), exitCodes.usage);
}
