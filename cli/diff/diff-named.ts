import { stat } from 'node:fs/promises';
import type { MachineConfig } from '../../api/machine-config.ts';
import { parseReference } from '../../image/reference.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { limitsOf } from '../../operator/limit-flags.ts';
import { type ConfigDiff, diffConfigs, patchOf } from '../change/diff.ts';
import type { ChangeFlags } from '../change/file-flags.ts';
import { connect, machineConfigsOf, readLiveCluster } from '../change/live-cluster.ts';
import { readObjects } from '../change/object-files.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  registryClient,
  rethrow,
} from '../command-line/registry-flags.ts';
import { shapeOf } from '../object-shape.ts';
import { readMake } from './carried-config.ts';
import { bothSides, type NamingCluster, oneSide, type Side } from './named-config.ts';

export interface DiffNamedFlags extends ChangeFlags, RegistryFlags {
  readonly pool?: string;
  readonly running?: boolean;
  /** In Go's words. */
  readonly architecture: string;
}

/**
 * Compares two configs, each named by a file of its own, by the image that carries it, or as the cluster or `-f` has it: a
 * MachineConfig, a pool or a node. Of one pool or node: what it runs with what it is to run.
 *
 * @throws CommandError
 */
export async function diffNamed(named: readonly string[], flags: DiffNamedFlags): Promise<ConfigDiff> {
  const [from = '', to, ...more] = named;
  if (more.length > 0)
    throw new CommandError(`diff: expected one or two names, not ${named.length}`, exitCodes.usage);
  if (flags.pool !== undefined || flags.running === true || flags.from.length > 0 || flags.prune === true) {
    throw new CommandError(
      "diff: --pool, --running, --from and --prune can't be combined with names to compare",
      exitCodes.usage,
    );
  }
  let known: Promise<NamingCluster> | undefined;
  const cluster = () => {
    known ??= namingCluster(flags);
    return known;
  };
  if (to === undefined) return compare(from, from, ...bothSides(from, await cluster()), flags);
  const sideOf = async (name: string): Promise<Side> => {
    if (await isFile(name)) return { config: await onlyConfigOf(name) };
    return isImage(name) ? imageOf(name, flags) : oneSide(name, await cluster());
  };
  // In order: of two that are wrong the first is told.
  const before = await sideOf(from);
  return compare(from, to, before, await sideOf(to), flags);
}

function compare(from: string, to: string, before: Side, after: Side, flags: DiffNamedFlags): ConfigDiff {
  const changes = diffConfigs(nodeConfigOf(before.config, flags), nodeConfigOf(after.config, flags));
  return { from, to, changes: [...baseChange(before, after), ...changes] };
}

/** Two images may carry one config and be of other bases. */
function baseChange({ baseImage: before }: Side, { baseImage: after }: Side): ConfigDiff['changes'] {
  if (before === undefined || after === undefined || before === after) return [];
  const subject = 'baseImage';
  return [
    {
      kind: 'field',
      subject,
      change: 'changed',
      diff: patchOf({ subject, change: 'changed' }, `${before}\n`, `${after}\n`),
    },
  ];
}

/** No MachineConfig's name has a slash; and a file that is not there has no registry before it. */
function isImage(name: string): boolean {
  try {
    const { tag, digest } = parseReference(name);
    return tag !== undefined || digest !== undefined;
  } catch {
    return false;
  }
}

async function imageOf(name: string, flags: DiffNamedFlags): Promise<Side> {
  const client = await registryClient(flags);
  const { architecture } = flags;
  const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS);
  return readMake(client, parseReference(name), { name, architecture }, signal).catch(asUnavailable);
}

/** 1 would say that there is a difference. @throws CommandError */
function asUnavailable(error: unknown): never {
  try {
    return rethrow(error);
  } catch (told) {
    if (!(told instanceof CommandError) || told === error) throw told;
    throw new CommandError(told.message, exitCodes.unavailable, { cause: error });
  }
}

async function isFile(name: string): Promise<boolean> {
  return (await stat(name).catch(() => undefined))?.isFile() === true;
}

/** @returns what the files of `-f` have, or, where none is named, the cluster. */
async function namingCluster(flags: DiffNamedFlags): Promise<NamingCluster> {
  if (flags.filename.length === 0) return readLiveCluster(await connect(flags));
  const objects = machineConfigsOf(await readObjects(flags.filename));
  return { objects, rendered: new Map(), machineConfigNodes: [], builds: [] };
}

async function onlyConfigOf(file: string): Promise<MachineConfig> {
  const [config, ...more] = machineConfigsOf(await readObjects([file]));
  if (config !== undefined && more.length === 0) return config;
  throw new CommandError(
    `${file}: has ${config === undefined ? 'no MachineConfig' : `${more.length + 1} MachineConfigs`}; expected one`,
    exitCodes.usage,
  );
}

function nodeConfigOf(config: MachineConfig, flags: DiffNamedFlags): NodeConfig {
  const { problems } = shapeOf(config);
  if (problems.length > 0) throw new CommandError(problems.join('\n'), exitCodes.usage);
  const parsed = parseNodeConfig(config, limitsOf(flags));
  if (parsed.ok) return parsed.config;
  const lines = parsed.problems.map(
    (problem) => `MachineConfig ${config.metadata.name}: ${formatProblem(problem)}`,
  );
  throw new CommandError(lines.join('\n'), exitCodes.usage);
}
