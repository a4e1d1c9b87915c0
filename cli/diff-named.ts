import { stat } from 'node:fs/promises';
import { type MachineConfig, MachineConfigs } from '../api/machine-config.ts';
import type { KubernetesObject } from '../api/object.ts';
import { parseReference } from '../image/reference.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { type ConfigDiff, diffConfigs, patchOf } from './diff.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import type { ChangeFlags } from './file-flags.ts';
import { readMake } from './image/carried-config.ts';
import { limitsOf } from './limit-flags.ts';
import { connect, readLiveCluster } from './live-objects.ts';
import { readObjects } from './object-files.ts';
import { shapeOf } from './object-shape.ts';
import { REGISTRY_DEADLINE_MS, type RegistryFlags, registryClient, rethrow } from './registry-flags.ts';

export interface DiffNamedFlags extends ChangeFlags, RegistryFlags {
  readonly pool?: string;
  readonly running?: boolean;
  /** In Go's words. */
  readonly architecture: string;
}

/** One of two that are compared. */
interface Side {
  readonly config: MachineConfig;
  /** Of an image. */
  readonly baseImage?: string;
}

/**
 * Compares two MachineConfigs, each named as the cluster or `-f` has it, by a file of its own, or by the image that carries
 * it.
 *
 * @throws CommandError
 */
export async function diffNamed(named: readonly string[], flags: DiffNamedFlags): Promise<ConfigDiff> {
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
  let others: Promise<readonly MachineConfig[]> | undefined;
  const sideOf = async (name: string): Promise<Side> => {
    if (await isFile(name)) return { config: await onlyConfigOf(name) };
    if (isImage(name)) return imageOf(name, flags);
    others ??= namedConfigs(flags);
    return { config: byName(await others, name) };
  };
  // In order: of two that are wrong the first is told.
  const before = await sideOf(from);
  const after = await sideOf(to);
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

/** @returns the MachineConfigs of `-f`, or, where no file is named, of the cluster, rendered ones included. */
async function namedConfigs(flags: DiffNamedFlags): Promise<readonly MachineConfig[]> {
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
