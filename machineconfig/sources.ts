import type { MachineConfig } from '../api/machine-config.ts';
import type { NodeObstacle, Obstacle } from './claim-conflicts.ts';
import type { IgnitionConfig } from './ignition/config.ts';
import { ignition3 } from './ignition/config.ts';
import { identityOf, type ListSchema, type Schema, type StructValue, type Value } from './ignition/schema.ts';
import { configsWith, type Subject } from './owners.ts';
import type { ParsedMachineConfig } from './parse-machine-config.ts';
import type { ConfigProblems, Problem } from './problem.ts';

/**
 * Finds the MachineConfigs that cause a problem of their merge. Merging records nothing, because problems are rare: the
 * entry is found in the sources by its identity.
 *
 * @param problems with paths in `merged`
 * @param parsed the sources, in merge order
 * @returns the problems by MachineConfig: the last one with the entry, naming the others; '' when none has it
 */
export function blameEntries(
  problems: readonly Problem[],
  merged: IgnitionConfig,
  parsed: readonly ParsedMachineConfig[],
): ConfigProblems[] {
  return problems.map((problem) => {
    const sources = sourcesOf(problem.path, merged, parsed);
    const others = sources.slice(0, -1);
    const reason = others.length === 0 ? problem.reason : `${problem.reason} (also in ${others.join(', ')})`;
    return { machineConfig: sources.at(-1) ?? '', problems: [{ ...problem, reason }] };
  });
}

/**
 * @param merged what the obstacles are of
 * @param configs the MachineConfigs of the pool, in merge order
 * @returns obstacles as problems of the MachineConfig that brings their subject, each naming the others that it takes
 */
export function blameOwners(
  obstacles: readonly NodeObstacle[],
  merged: IgnitionConfig,
  configs: readonly MachineConfig[],
): ConfigProblems[] {
  const byOwner = new Map<string, Problem[]>();
  for (const { subject, why, expected, involved } of obstacles) {
    const owners = ownersOfAll(involved, configs);
    const others = owners.slice(0, -1);
    const reason = `${subject} ${why}${others.length === 0 ? '' : ` (together with ${joined(others)})`}`;
    const problem = { path: placeOf(subject, involved.at(-1), merged), reason, expected };
    const owner = owners.at(-1) ?? '';
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), problem]);
  }
  return [...byOwner].map(([machineConfig, problems]) => ({ machineConfig, problems }));
}

/** @returns the JSON path of what an obstacle is of. */
function placeOf(path: string, subject: Subject | undefined, merged: IgnitionConfig): string {
  const { storage = {}, systemd = {}, passwd = {} } = merged;
  const at = (list: string, names: readonly string[] = [], suffix = ''): string[] => {
    const index = names.indexOf(subject?.subject ?? '');
    return index < 0 ? [] : [`$.${list}[${index}]${suffix}`];
  };
  const paths = (list: 'files' | 'directories' | 'links') =>
    at(
      `storage.${list}`,
      storage[list]?.map((entry) => entry.path),
      '.path',
    );
  const found = {
    file: () => [...paths('files'), ...paths('directories'), ...paths('links')],
    unit: () =>
      at(
        'systemd.units',
        systemd.units?.map(({ name }) => name),
      ),
    sshKey: () =>
      at(
        'passwd.users',
        passwd.users?.map(({ name }) => name),
      ),
    field: () => [`spec.${subject?.subject ?? ''}`],
  };
  return (subject === undefined ? undefined : found[subject.kind]()[0]) ?? path;
}

/** @returns the text of an obstacle with the names of the MachineConfigs that take part, as far as they are known. */
export function formatObstacle(
  { subject, why, involved }: Obstacle,
  configs: readonly MachineConfig[],
): string {
  const owners = ownersOfAll(involved, configs);
  return `${subject}: ${why}${owners.length === 0 ? '' : ` (${joined(owners)})`}`;
}

/** In the order of the subjects; the last one's last MachineConfig comes last. */
function ownersOfAll(subjects: readonly Subject[], configs: readonly MachineConfig[]): readonly string[] {
  const names = subjects.flatMap((subject) => configsWith(subject, configs)).toReversed();
  return [...new Set(names)].toReversed();
}

function joined(names: readonly string[]): string {
  return `MachineConfig${names.length === 1 ? '' : 's'} ${names.join(', ')}`;
}

/**
 * @param path a JSON path in the merged config
 * @returns names of the MachineConfigs that set the list entry or field at the path, in merge order
 */
export function sourcesOf(
  path: string,
  merged: Partial<IgnitionConfig>,
  parsed: readonly ParsedMachineConfig[],
): string[] {
  const [, section = '', name = '', index] = /^\$\.(\w+)\.(\w+)(?:\[(\d+)\])?/.exec(path) ?? [];
  const list = fieldSchema(fieldSchema(ignition3, section), name);
  const entry = index === undefined ? undefined : listAt(merged, section, name)?.[Number(index)];
  const has = (config: Partial<IgnitionConfig>): boolean => {
    const field = listAt(config, section, name);
    if (entry === undefined || list?.kind !== 'list') {
      return field !== undefined;
    }
    const identity = identityOf(list, entry);
    return field?.some((other) => identityOf(list as ListSchema, other) === identity) ?? false;
  };
  return parsed
    .filter(({ ignition }) => ignition !== undefined && has(ignition))
    .map((source) => source.name);
}

function fieldSchema(schema: Schema | undefined, name: string): Schema | undefined {
  return schema?.kind === 'struct' ? schema.fields.find((field) => field.name === name)?.schema : undefined;
}

function listAt(
  config: Partial<IgnitionConfig>,
  section: string,
  name: string,
): readonly Value[] | undefined {
  // A parsed config is a struct value of its schema.
  const value = (config as unknown as { readonly [section: string]: StructValue | undefined })[section]?.[
    name
  ];
  return Array.isArray(value) ? value : undefined;
}
