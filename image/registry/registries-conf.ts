import { parse } from 'smol-toml';

/** A file of registries.conf's format; its name is for messages. */
export interface ConfFile {
  readonly name: string;
  readonly text: string;
}

/** Which references a mirror is used for. */
export type MirrorUse = 'all' | 'digest-only' | 'tag-only';

interface MirrorRule {
  /** What the prefix of a reference becomes. */
  readonly location: string;
  readonly insecure: boolean;
  readonly use: MirrorUse;
}

/** One `[[registry]]`. */
export interface RegistryRule {
  /** The beginning of the references that it is for, or `*.domain`. */
  readonly prefix: string;
  /** What the prefix becomes; undefined to leave the reference as it is, which only `*.domain` does. */
  readonly location: string | undefined;
  readonly blocked: boolean;
  readonly insecure: boolean;
  /** In the order in which they are tried. */
  readonly mirrors: readonly MirrorRule[];
}

/** What registries.conf says of where images are pulled from; each prefix is there once. */
export interface RegistriesConf {
  readonly registries: readonly RegistryRule[];
}

/** Nothing is mirrored, moved or blocked. */
export const noRegistriesConf: RegistriesConf = { registries: [] };

type Table = Readonly<Record<string, unknown>>;

const USES: readonly string[] = ['all', 'digest-only', 'tag-only'] satisfies readonly MirrorUse[];

/**
 * Reads registries.conf and its drop-ins (containers-registries.conf(5), version 2; containers-registries.conf.d(5)).
 * Search registries and aliases are left aside: a reference always names its registry here.
 *
 * @param files the main file first, then drop-ins in the order of their names: a later file's registry takes the place
 *   of an earlier one's with the same prefix. Within a file the first counts.
 * @throws TypeError that names the file, the registry and what is wrong with it.
 */
export function parseRegistriesConf(files: readonly ConfFile[]): RegistriesConf {
  const byPrefix = new Map<string, RegistryRule>();
  for (const file of files) {
    const rules = registriesOf(file);
    for (const rule of rules.toReversed()) byPrefix.set(rule.prefix, rule);
  }
  return { registries: [...byPrefix.values()] };
}

function registriesOf({ name, text }: ConfFile): readonly RegistryRule[] {
  let root: Table;
  try {
    root = parse(text);
  } catch (cause) {
    throw new TypeError(`${name}: not TOML: ${firstLine(cause)}`, { cause });
  }
  if (root['registries'] !== undefined) {
    throw new TypeError(`${name}: [registries] is of version 1; expected [[registry]] tables`);
  }
  return tables(root['registry'], `${name}: registry`).map((table, index) =>
    registryOf(table, `${name}: registry ${index + 1}`),
  );
}

function registryOf(table: Table, where: string): RegistryRule {
  const location = locationOf(table, 'location', where);
  const prefix = locationOf(table, 'prefix', where) ?? location;
  if (prefix === undefined)
    throw new TypeError(`${where}: has no prefix and no location; expected at least one`);
  if (location === undefined && !prefix.startsWith('*.')) {
    throw new TypeError(`${where} (${prefix}): has no location, which only a prefix *.domain may lack`);
  }
  if (table['pull-from-mirror'] !== undefined) {
    throw new TypeError(`${where} (${prefix}): pull-from-mirror belongs to a [[registry.mirror]]`);
  }
  const digestOnly = flag(table, 'mirror-by-digest-only', where);
  return {
    prefix,
    location,
    blocked: flag(table, 'blocked', where),
    insecure: flag(table, 'insecure', where),
    mirrors: tables(table['mirror'], `${where}: mirror`).map((mirror, index) =>
      mirrorOf(mirror, digestOnly, `${where} (${prefix}), mirror ${index + 1}`),
    ),
  };
}

function mirrorOf(table: Table, digestOnly: boolean, where: string): MirrorRule {
  const location = locationOf(table, 'location', where);
  if (location === undefined) throw new TypeError(`${where}: has no location`);
  const use = text(table, 'pull-from-mirror', where);
  if (use !== undefined && !isUse(use)) {
    throw new TypeError(`${where}: pull-from-mirror ${JSON.stringify(use)}; expected ${USES.join(', ')}`);
  }
  if (use !== undefined && digestOnly) {
    throw new TypeError(`${where}: pull-from-mirror beside mirror-by-digest-only; expected one of the two`);
  }
  return {
    location,
    insecure: flag(table, 'insecure', where),
    use: digestOnly ? 'digest-only' : (use ?? 'all'),
  };
}

function isUse(value: string): value is MirrorUse {
  return USES.includes(value);
}

/** Generated files write `prefix = ""` for one that is not given. */
function locationOf(table: Table, key: string, where: string): string | undefined {
  const given = text(table, key, where);
  if (given === undefined || given === '') return undefined;
  if (/^https?:/i.test(given)) {
    throw new TypeError(
      `${where}: ${key} ${JSON.stringify(given)}; expected host[:port][/path] without a scheme`,
    );
  }
  return given.replace(/(?<!\/)\/+$/, '');
}

function text(table: Table, key: string, where: string): string | undefined {
  const value = table[key];
  if (value === undefined || typeof value === 'string') return value;
  throw new TypeError(`${where}: ${key} is not a string`);
}

function flag(table: Table, key: string, where: string): boolean {
  const value = table[key] ?? false;
  if (typeof value === 'boolean') return value;
  throw new TypeError(`${where}: ${key} is not a boolean; expected true or false`);
}

function tables(value: unknown, where: string): readonly Table[] {
  const items: unknown[] | undefined = Array.isArray(value) ? value : value === undefined ? [] : undefined;
  if (items?.every((item) => typeof item === 'object' && item !== null && !Array.isArray(item)) !== true) {
    throw new TypeError(`${where}: expected [[tables]]`);
  }
  return items as readonly Table[];
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}
