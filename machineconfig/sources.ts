import type { IgnitionConfig } from './ignition/config.ts';
import { identityOf, type ListSchema, type Schema, type StructValue, type Value } from './ignition/schema.ts';
import { ignition3 } from './ignition/schema-3.ts';
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
