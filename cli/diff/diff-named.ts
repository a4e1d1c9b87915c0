import { stat } from 'node:fs/promises';
import type { MachineConfig } from '../../api/machine-config.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { diffConfigs, patchOf } from '../../machineconfig/text-diff.ts';
import { machineConfigsOf } from '../../predict/objects/cluster-state.ts';
import { shapeOf } from '../../predict/objects/object-shape.ts';
import { limitsOf } from '../../rollout/limit-flags.ts';
import type { ConfigDiff } from '../change/diff.ts';
import type { ChangeFlags } from '../change/file-flags.ts';
import { readLiveCluster } from '../change/live-cluster.ts';
import { readObjects } from '../change/object-files.ts';
import { connect } from '../command-line/cluster-access.ts';
import { UsageError } from '../command-line/exit-codes.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  registryClient,
  rethrowUnavailable,
} from '../command-line/registry-flags.ts';
import { readImageMake } from '../image/image-make.ts';
import { bothSides, type NamingCluster, oneSide, type Side } from './named-config.ts';

export interface DiffNamedFlags extends ChangeFlags, RegistryFlags {
  readonly pool?: string;
  readonly running?: boolean;
  /** GOARCH, such as amd64. */
  readonly architecture: string;
}

/**
 * Compares two configs. Each is given as a file, as an image, or as the name of a MachineConfig, a pool or a node in
 * the cluster or in the files of `-f`. For a single pool or node it compares what it runs with its target.
 *
 * @throws CommandError
 */
export async function diffNamed(named: readonly string[], flags: DiffNamedFlags): Promise<ConfigDiff> {
  const [from = '', to, ...more] = named;
  if (more.length > 0) throw new UsageError(`diff: expected one or two names, not ${named.length}`);
  if (flags.pool !== undefined || flags.running === true || flags.from.length > 0 || flags.prune === true) {
    throw new UsageError(
      "diff: --pool, --running, --from and --prune can't be combined with names to compare",
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
  // One after the other, so that of two errors the first is reported.
  const before = await sideOf(from);
  return compare(from, to, before, await sideOf(to), flags);
}

function compare(from: string, to: string, before: Side, after: Side, flags: DiffNamedFlags): ConfigDiff {
  const changes = diffConfigs(nodeConfigOf(before.config, flags), nodeConfigOf(after.config, flags));
  return { from, to, changes: [...baseChange(before, after), ...changes] };
}

/** Two images may contain the same config and have different base images. */
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

/** The name of a MachineConfig contains no slash, and the path of a missing file doesn't start with a registry. */
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
  const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS);
  const reference = parseReference(name);
  const read = async () => {
    const description = await describeImage(client, reference, flags.architecture, signal);
    return readImageMake(client, reference, { name, description }, signal);
  };
  return read().catch(rethrowUnavailable);
}

async function isFile(name: string): Promise<boolean> {
  return (await stat(name).catch(() => undefined))?.isFile() === true;
}

/** @returns the objects of the files of `-f` or, when none is named, of the cluster. */
async function namingCluster(flags: DiffNamedFlags): Promise<NamingCluster> {
  if (flags.filename.length === 0) return readLiveCluster(await connect(flags));
  const objects = machineConfigsOf(await readObjects(flags.filename));
  return { objects, rendered: new Map(), machineConfigNodes: [], builds: [] };
}

async function onlyConfigOf(file: string): Promise<MachineConfig> {
  const [config, ...more] = machineConfigsOf(await readObjects([file]));
  if (config !== undefined && more.length === 0) return config;
  throw new UsageError(
    `${file}: has ${config === undefined ? 'no MachineConfig' : `${more.length + 1} MachineConfigs`}; expected one`,
  );
}

function nodeConfigOf(config: MachineConfig, flags: DiffNamedFlags): NodeConfig {
  const { object, problems } = shapeOf(config);
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
  const parsed = parseNodeConfig(object as MachineConfig, limitsOf(flags));
  if (parsed.ok) return parsed.config;
  const lines = parsed.problems.map(
    (problem) => `MachineConfig ${config.metadata.name}: ${formatProblem(problem)}`,
  );
  throw new UsageError(lines.join('\n'));
}
