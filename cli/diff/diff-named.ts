import { stat } from 'node:fs/promises';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { imageLabels, nodePaths } from '../../api/names.ts';
import { describeImage } from '../../image/append.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
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
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  registryClient,
  rethrow,
} from '../command-line/registry-flags.ts';
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
  const { architecture } = flags;
  const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS);
  return readMake(client, parseReference(name), { name, architecture }, signal).catch(asUnavailable);
}

/** Exit code 1 would mean that there are differences. @throws {CommandError} */
function asUnavailable(error: unknown): never {
  try {
    return rethrow(error);
  } catch (thrown) {
    if (!(thrown instanceof CommandError) || thrown === error) throw thrown;
    throw new CommandError(thrown.message, exitCodes.unavailable, { cause: error });
  }
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
  throw new CommandError(
    `${file}: has ${config === undefined ? 'no MachineConfig' : `${more.length + 1} MachineConfigs`}; expected one`,
    exitCodes.usage,
  );
}

function nodeConfigOf(config: MachineConfig, flags: DiffNamedFlags): NodeConfig {
  const { object, problems } = shapeOf(config);
  if (problems.length > 0) throw new CommandError(problems.join('\n'), exitCodes.usage);
  const parsed = parseNodeConfig(object as MachineConfig, limitsOf(flags));
  if (parsed.ok) return parsed.config;
  const lines = parsed.problems.map(
    (problem) => `MachineConfig ${config.metadata.name}: ${formatProblem(problem)}`,
  );
  throw new CommandError(lines.join('\n'), exitCodes.usage);
}

/** What Shale built an image from. */
interface ImageMake {
  /** The rendered config that it contains. */
  readonly config: MachineConfig;
  /** By digest. */
  readonly baseImage: string;
}

/** Bytes; a rendered config is stored in etcd, whose limit for a request is smaller. */
const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Reads from the image itself what it was built from: this works without a cluster and after the MachineConfigs were
 * deleted.
 *
 * @param name for messages. @param architecture of the image to read from an index, as GOARCH.
 * @throws CommandError for an image that Shale did not build; RegistryError, ContentError, LayerError.
 */
async function readMake(
  client: RegistryClient,
  at: Reference,
  { name, architecture }: { readonly name: string; readonly architecture: string },
  signal: AbortSignal,
): Promise<ImageMake> {
  const { manifest, config } = await describeImage(client, at, architecture, signal);
  const baseImage = config.config?.Labels?.[imageLabels.baseImage];
  const [blob, diffId] = [manifest.layers.at(-1), config.rootfs.diff_ids.at(-1)];
  if (baseImage === undefined || blob === undefined || diffId === undefined) throw notOurs(name);
  let carried: MachineConfig | undefined;
  const layer = readLayer(client.readBlob(at, blob, signal), { mediaType: blob.mediaType, diffId }, signal);
  for await (const item of layer) {
    if (item.type !== 'file' || `/${item.path}` !== nodePaths.imageConfig) continue;
    carried = parseConfig(await textOf(item.content), name);
  }
  // The digest of the layer is verified only at its end.
  if (carried === undefined) throw notOurs(name);
  return { config: carried, baseImage };
}

function parseConfig(text: string, name: string): MachineConfig {
  try {
    const object = JSON.parse(text) as MachineConfig;
    if (object.kind === MachineConfigs.kind) return object;
  } catch (cause) {
    throw new CommandError(`${name}: ${nodePaths.imageConfig} can't be read`, exitCodes.usage, { cause });
  }
  throw new CommandError(`${name}: ${nodePaths.imageConfig} contains no MachineConfig`, exitCodes.usage);
}

async function textOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  if (content instanceof Uint8Array) return Buffer.from(content).toString('utf8');
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of content) {
    size += chunk.length;
    if (size > MAX_CONFIG_BYTES)
      throw new CommandError(
        `${nodePaths.imageConfig} is larger than a MachineConfig can be`,
        exitCodes.usage,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function notOurs(name: string): CommandError {
  return new CommandError(`${name} was not built by Shale and contains no MachineConfig`, exitCodes.usage);
}
