import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { MachineConfigPool } from '../machine-config-pool.ts';
import { formatDriver } from '../machine-owner.ts';
import { parseMaxUnavailable } from '../max-unavailable.ts';
import { describedAnnotations } from '../names.ts';
import { formatSchemaError } from '../schema-message.ts';
import { poolSettingsTable, type SettingName, type SettingValues, settingNames } from './table.ts';

/** A pool as far as its settings go. */
export type SetPool = Pick<MachineConfigPool, 'metadata'> & Partial<Pick<MachineConfigPool, 'spec'>>;

/** The operator's own, which apply where the pool has none. */
export type SettingDefaults = Partial<SettingValues>;

export interface ReadSettings {
  readonly values: SettingValues;
  /** Why no update may start, if a setting can't be read for which no value is safe. */
  readonly closed: string | undefined;
  /** What can't be read, each with what is wrong and what applies instead. */
  readonly problems: readonly string[];
  /** Annotations without effect, and those that a later version won't read. */
  readonly warnings: readonly string[];
}

/**
 * @returns the settings of a pool. One that can't be read is replaced by the value that disrupts least, and reported.
 */
export function readSettings(pool: SetPool, defaults: SettingDefaults = {}): ReadSettings {
  const readings = settingNames.map((name) => [name, readSetting(pool, name, defaults)] as const);
  const closing = readings.find(([, { closes }]) => closes !== undefined)?.[1].closes;
  const limit = readLimit(pool.spec?.maxUnavailable);
  return {
    values: Object.fromEntries(
      readings.map(([name, { value }]) => [name, value]),
    ) as unknown as SettingValues,
    closed: closing ?? limit.closed,
    problems: [...readings.flatMap(([, { problem }]) => problem ?? []), ...limit.problems],
    warnings: annotationWarnings(pool),
  };
}

/** @returns one setting of a pool, as {@link readSettings} gives it. */
export function settingOf<Name extends SettingName>(pool: SetPool, name: Name): SettingValues[Name] {
  return readSetting(pool, name, {}).value as SettingValues[Name];
}

/** What Cluster API decides where it drives a pool (rollout/gates/driven-by.ts). */
const DECIDED_BY_CLUSTER_API: readonly SettingName[] = ['waves', 'soak'];

/** @returns one line for each field of a pool that has no effect, because Cluster API drives it. */
export function drivenWarnings(pool: SetPool): readonly string[] {
  const owner = settingOf(pool, 'drivenBy');
  if (owner === undefined) return [];
  const isSet = (name: SettingName) => pool.spec?.shale?.[name] !== undefined;
  const fields = [
    ...(pool.spec?.maxUnavailable === undefined ? [] : ['spec.maxUnavailable']),
    ...DECIDED_BY_CLUSTER_API.filter(isSet).map(fieldOf),
  ];
  return fields.map(
    (field) =>
      `${field} has no effect while ${fieldOf('drivenBy')} is set: ${formatDriver(owner)} decides how many nodes are updated at once`,
  );
}

/** @returns the field of a setting, for messages. */
export function fieldOf(name: SettingName): string {
  return `spec.shale.${name}`;
}

interface Reading {
  readonly value: unknown;
  readonly problem?: string;
  /** Why no update starts. */
  readonly closes?: string | undefined;
}

/** A field is there for what it says: the annotation counts only without it. */
function readSetting({ metadata, spec }: SetPool, name: SettingName, defaults: SettingDefaults): Reading {
  const { schema, read, unset, unreadable, former } = poolSettingsTable[name];
  const field: unknown = spec?.shale?.[name];
  const text = former === undefined ? undefined : metadata.annotations?.[former.annotation];
  const absent = defaults[name] ?? unset;
  if (field === undefined && text === undefined) return { value: absent };
  const where = field === undefined ? `annotation ${former?.annotation}` : fieldOf(name);
  try {
    const given = field ?? former?.as(text ?? '');
    return { value: (read as (known: unknown) => unknown)(parseStrictly(schema, given)) };
  } catch (error) {
    return {
      value: unreadable.value ?? absent,
      problem: `${where} can't be read, so ${unreadable.so}: ${formatSchemaError(error)}`,
      closes: unreadable.closes && `${where} can't be read`,
    };
  }
}

/** The API server drops unknown fields of `spec.shale`; in an annotation nobody has. */
function parseStrictly(schema: z.ZodType, given: unknown): unknown {
  const known = schema.parse(given);
  if (!isDeepStrictEqual(known, given))
    throw new Error(`it has fields that are unknown: expected ${JSON.stringify(known)}`);
  return known;
}

/** MCO starts nothing with a negative limit either. */
function readLimit(setting: number | string | undefined): Pick<ReadSettings, 'closed' | 'problems'> {
  const limit = parseMaxUnavailable(setting);
  if (limit !== undefined) {
    const closed = limit.value < 0 ? `spec.maxUnavailable is ${setting}, so no update starts` : undefined;
    return { closed, problems: [] };
  }
  const problem = `spec.maxUnavailable ${JSON.stringify(setting)} can't be read, so one node is unavailable at a time: expected a number, or a percentage such as "20%"`;
  return { closed: undefined, problems: [problem] };
}

const PREFIX = 'shale.dev/';

/** Requests and records on pools: no settings. */
const otherAnnotations: ReadonlySet<string> = new Set(
  Object.values(describedAnnotations)
    .filter(({ on }) => on === 'MachineConfigPool')
    .map(({ name }) => name),
);
const settingByAnnotation: ReadonlyMap<string, SettingName> = new Map(
  settingNames.flatMap((name) => {
    const { former } = poolSettingsTable[name];
    return former === undefined ? [] : [[former.annotation, name] as const];
  }),
);

/** @returns one line for each annotation of Shale's own that has no effect, or soon has none. */
function annotationWarnings({ metadata, spec }: SetPool): readonly string[] {
  const own = Object.keys(metadata.annotations ?? {}).filter(
    (annotation) => annotation.startsWith(PREFIX) && !otherAnnotations.has(annotation),
  );
  return own.sort().map((annotation) => {
    const name = settingByAnnotation.get(annotation);
    if (name === undefined)
      return `annotation ${annotation} is unknown and has no effect: settings of a pool are fields of spec.shale (kubectl explain mcp.spec.shale)`;
    return spec?.shale?.[name] === undefined
      ? `annotation ${annotation} is read for one more version only: set ${fieldOf(name)} instead`
      : `annotation ${annotation} has no effect, because ${fieldOf(name)} is set: remove it`;
  });
}
