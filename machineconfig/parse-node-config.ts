import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.ts';
import type {
  IgnitionConfig,
  IgnitionDirectory,
  IgnitionFile,
  IgnitionLink,
  IgnitionOwner,
  PathEntry,
  Unit,
} from './ignition/config.ts';
import { ContentsReader, type Limits } from './ignition/contents.ts';
import { parseIgnition } from './ignition/parse.ts';
import { splitKernelArguments } from './kernel-arguments.ts';
import type { NodeConfig, NodeDirectory, NodeFile, NodeLink, NodeUnit, Owned, Owner } from './node-config.ts';
import { kernelTypeOf } from './os-packages.ts';
import { readMarks } from './owner-marks.ts';
import type { ConfigOutline } from './path-claims.ts';
import type { Problem, Validated } from './problem.ts';
import { recordedLimits } from './rendered-annotations.ts';

const NO_IGNITION: { readonly ok: true; readonly config: Partial<IgnitionConfig> } = { ok: true, config: {} };

/** Appending is not idempotent; MCO's daemon refuses it on the node (writeFiles). */
export const APPEND_REFUSED = {
  reason: 'is not supported: appending twice is not appending once',
  expected: 'the whole contents',
} as const;

/** Ignition's defaults, which MCO's daemon shares. */
const DEFAULT_FILE_MODE = 0o644;
const DEFAULT_DIRECTORY_MODE = 0o755;

/**
 * Converts a rendered MachineConfig (or a single one) to the config of a node.
 *
 * @param rendered from the API or an image; not trusted
 * @param limits for decompressed contents; those that it was rendered with
 * @returns the config with contents decoded and defaults filled in, or every problem
 */
export function parseNodeConfig(
  rendered: MachineConfig,
  limits: Limits = recordedLimits(rendered),
): Validated<{ config: NodeConfig }> {
  const { spec, metadata } = rendered;
  const ignition = spec.config === undefined ? NO_IGNITION : parseIgnition(spec.config, limits);
  if (!ignition.ok) {
    return ignition;
  }
  const files = decodeFiles(ignition.config.storage?.files ?? [], limits);
  if (files.problems.length > 0) {
    return { ok: false, problems: files.problems };
  }
  return {
    ok: true,
    config: {
      ...outlineOf(ignition.config, spec),
      name: metadata.name,
      files: files.byPath,
      fips: spec.fips ?? false,
      osImageURL: spec.osImageURL ?? '',
      marks: readMarks(rendered),
    },
  };
}

/**
 * @param ignition valid. @param spec of the MachineConfig that has it.
 * @returns what a rendered config means on a node's disk, without decoding a file.
 */
export function outlineOf(
  ignition: Partial<IgnitionConfig>,
  spec: Pick<MachineConfigSpec, 'kernelArguments' | 'kernelType' | 'extensions'>,
): ConfigOutline & Pick<NodeConfig, 'passwordHashes'> {
  const { storage = {}, systemd = {}, passwd = {} } = ignition;
  const users = passwd.users ?? [];
  return {
    files: byPath((storage.files ?? []).map(toFile)),
    directories: byPath((storage.directories ?? []).map(toDirectory)),
    links: byPath((storage.links ?? []).map(toLink)),
    units: new Map((systemd.units ?? []).map((unit) => [unit.name, toUnit(unit)])),
    sshKeys: new Map(
      users
        .filter((user) => (user.sshAuthorizedKeys ?? []).length > 0)
        .map((user) => [user.name, (user.sshAuthorizedKeys ?? []).flatMap(keysIn)]),
    ),
    passwordHashes: new Map(
      users
        .filter((user) => (user.passwordHash ?? '') !== '')
        .map((user) => [user.name, user.passwordHash ?? '']),
    ),
    kernelArguments: splitKernelArguments(spec.kernelArguments ?? []),
    kernelType: kernelTypeOf(spec.kernelType),
    extensions: spec.extensions ?? [],
  };
}

/**
 * Each line of authorized_keys is a key (sshd(8)), and MCO writes what it is given; so an entry of several lines is
 * several keys, which are compared, shown and reviewed one by one.
 */
function keysIn(entry: string): readonly string[] {
  if (!entry.trim().includes('\n')) return [entry];
  return entry
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** A file without contents in any config is an empty file, as in MCO. */
function decodeFiles(files: readonly IgnitionFile[], limits: Limits) {
  const contents = new ContentsReader(limits);
  const byPath = new Map<string, NodeFile>();
  const problems: Problem[] = [];
  for (const [index, file] of files.entries()) {
    const path = `$.storage.files[${index}]`;
    if ((file.append ?? []).length > 0) {
      problems.push({ ...APPEND_REFUSED, path: `${path}.append` });
    }
    const decoded = contents.decode(file.contents ?? {}, `${path}.contents`);
    if ('problem' in decoded) {
      problems.push(decoded.problem);
    } else {
      byPath.set(file.path, { ...toFile(file), contents: decoded.bytes });
    }
  }
  return { byPath, problems };
}

function toFile(file: IgnitionFile): Omit<NodeFile, 'contents'> {
  return { path: file.path, mode: file.mode ?? DEFAULT_FILE_MODE, ...ownersOf(file) };
}

function toDirectory(directory: IgnitionDirectory): NodeDirectory {
  return { path: directory.path, mode: directory.mode ?? DEFAULT_DIRECTORY_MODE, ...ownersOf(directory) };
}

function toLink(link: IgnitionLink): NodeLink {
  return { path: link.path, target: link.target ?? '', hard: link.hard ?? false, ...ownersOf(link) };
}

function ownersOf(entry: PathEntry): Owned {
  return { user: toOwner(entry.user), group: toOwner(entry.group) };
}

function toOwner({ id, name = '' }: IgnitionOwner = {}): Owner {
  return id === undefined && name !== '' ? { name } : { id: id ?? 0 };
}

function byPath<T extends { readonly path: string }>(entries: readonly T[]): ReadonlyMap<string, T> {
  return new Map(entries.map((entry) => [entry.path, entry]));
}

/** As in MCO's daemon, empty contents of a unit or drop-in are the same as none. */
function toUnit(unit: Unit): NodeUnit {
  const { name, contents = '', enabled, mask = false, dropins = [] } = unit;
  return {
    name,
    ...(contents !== '' && { contents }),
    enabled,
    masked: mask,
    dropins: new Map(
      dropins
        .filter((dropin) => (dropin.contents ?? '') !== '')
        .map((dropin) => [dropin.name, dropin.contents ?? '']),
    ),
  };
}
