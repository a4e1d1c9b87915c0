import { parse } from 'smol-toml';
import { imageNames } from './image-names.ts';

/** What a mirror or a registry's own location serves. */
export type PullFrom = 'all' | 'digest-only' | 'tag-only';

export interface ConfMirror {
  readonly location: string;
  readonly pull: PullFrom;
  readonly insecure: boolean;
}

export interface ConfRegistry {
  /** What references are matched with: the prefix, or the location where there is no prefix. */
  readonly scope: string;
  /** As the file has it; '' if it has none. */
  readonly prefix: string;
  /** Empty for a wildcard: images keep the host that they name. */
  readonly location: string;
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly mirrors: readonly ConfMirror[];
}

/** By scope: where images are pulled from. */
export type Registries = ReadonlyMap<string, ConfRegistry>;

/** Nothing is mirrored, moved or blocked. */
export const noRegistries: Registries = new Map();

/** A registries.conf as containers/image understands it. */
export interface RegistriesConf {
  readonly search: readonly string[];
  /** Of several with one scope the first counts. */
  readonly registries: Registries;
  /** All other settings that the file sets, by name: aliases, credential helpers, the mode for short names. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export type ReadRegistriesConf =
  | { readonly ok: true; readonly conf: RegistriesConf }
  | { readonly ok: false; readonly why: string };

class Refused extends Error {}

type Table = Readonly<Record<string, unknown>>;

/**
 * Reads a registries.conf by the rules of the library that CRI-O, Podman and skopeo read it with
 * (containers-registries.conf(5); containers/image, pkg/sysregistriesv2): it refuses the whole file for one wrong
 * entry, and then no image can be pulled.
 *
 * @returns the file's content, or the first thing that the library refuses.
 */
export function readRegistriesConf(text: string): ReadRegistriesConf {
  try {
    return { ok: true, conf: confOf(text) };
  } catch (error) {
    if (error instanceof Refused) return { ok: false, why: error.message };
    throw error;
  }
}

/** A file of registries.conf's format; its name is for messages. */
export interface ConfFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Reads registries.conf and its drop-ins (containers-registries.conf.d(5)).
 *
 * @param files the main file first, then drop-ins in the order of their names: a later file's registry takes the place
 *   of an earlier one's with the same scope.
 * @throws TypeError that names the file and what the library refuses in it.
 */
export function parseRegistriesConf(files: readonly ConfFile[]): Registries {
  const registries = files.flatMap(({ name, text }) => {
    const read = readRegistriesConf(text);
    if (!read.ok) throw new TypeError(`${name}: ${read.why}`);
    return [...read.conf.registries];
  });
  return new Map(registries);
}

function confOf(text: string): RegistriesConf {
  const root = tomlOf(text);
  const { registry, 'unqualified-search-registries': search, ...rest } = inLowerCase(root);
  const settings = otherSettings(rest);
  const registries = tablesAt(registry, 'registry').map((table, index) => registryOf(table, index + 1));
  const names = stringsAt(search, 'unqualified-search-registries').map((name) => locationAt(name, 'search'));
  const wrong = names.find((name) => !imageNames.host.test(name));
  if (wrong !== undefined) throw new Refused(`${JSON.stringify(wrong)} is no registry to search`);
  refuseOldFormat(settings);
  refuseContradictions(registries);
  const first = new Map<string, ConfRegistry>();
  for (const each of registries) if (!first.has(each.scope)) first.set(each.scope, each);
  return { search: names, registries: first, settings };
}

function tomlOf(text: string): Table {
  try {
    return parse(text);
  } catch (cause) {
    const [line = ''] = cause instanceof Error ? cause.message.split('\n') : [];
    throw new Refused(`is not TOML (${line})`, { cause });
  }
}

/** The library finds a field in whatever case it is written. */
function inLowerCase(table: Table): Table {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key.toLowerCase(), value]));
}

const SHORT_NAME_MODES = ['', 'disabled', 'enforcing', 'permissive'];

/** Empty settings count as absent. */
function otherSettings(rest: Table): Table {
  stringsAt(rest['credential-helpers'], 'credential-helpers');
  const mode = stringAt(rest, 'short-name-mode', 'the file');
  if (!SHORT_NAME_MODES.includes(mode)) {
    throw new Refused(`short-name-mode is ${JSON.stringify(mode)}`);
  }
  const given = Object.entries(rest).filter(
    ([, value]) => value !== '' && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(given);
}

/** The first version of the format has its lists in `[registries.search]`, `insecure` and `block`. */
function refuseOldFormat({ registries }: Table): void {
  if (isTable(registries) && Object.keys(registries).length > 0) {
    throw new Refused('is in version 1 of the format, which has [registries]; version 2 has [[registry]]');
  }
}

/** Registries with the same location need the same flags. */
function refuseContradictions(registries: readonly ConfRegistry[]): void {
  const byLocation = Map.groupBy(registries, ({ location, scope }) => location || scope);
  for (const [location, same] of byLocation) {
    for (const flag of ['insecure', 'blocked'] as const) {
      if (new Set(same.map((registry) => registry[flag])).size > 1) {
        throw new Refused(`registry ${location} is given several times with different values of ${flag}`);
      }
    }
  }
}

/** @param number which of the file's registries it is, from 1. */
function registryOf(given: Table, number: number): ConfRegistry {
  const table = inLowerCase(given);
  const prefix = locationAt(stringAt(table, 'prefix', 'a registry'), 'prefix');
  const location = locationAt(stringAt(table, 'location', 'a registry'), 'location');
  const scope = prefix === '' ? location : prefix;
  const name = `registry ${scope}`;
  if (scope === '') throw new Refused(`registry ${number} has neither prefix nor location`);
  if (location === '' && !isWildcard(scope)) throw new Refused(`${name} has no location`);
  if (isWildcard(scope) && /[/@:]/.test(scope)) {
    throw new Refused(`${name} is a wildcard with more than a domain`);
  }
  if (stringAt(table, 'pull-from-mirror', name) !== '') {
    throw new Refused(`${name} has pull-from-mirror, which only its mirrors may have`);
  }
  const digestOnly = flagAt(table, 'mirror-by-digest-only', name);
  return {
    scope,
    prefix,
    location,
    blocked: flagAt(table, 'blocked', name),
    insecure: flagAt(table, 'insecure', name),
    mirrors: tablesAt(table['mirror'], `mirror of ${name}`).map((mirror) =>
      mirrorOf(inLowerCase(mirror), name, digestOnly),
    ),
  };
}

function mirrorOf(table: Table, registry: string, digestOnly: boolean): ConfMirror {
  const location = locationAt(stringAt(table, 'location', `a mirror of ${registry}`), 'location');
  if (location === '') throw new Refused(`a mirror of ${registry} has no location`);
  const name = `mirror ${location} of ${registry}`;
  const pull = stringAt(table, 'pull-from-mirror', name);
  if (digestOnly && pull !== '') {
    throw new Refused(`${name} has pull-from-mirror beside the registry's mirror-by-digest-only`);
  }
  if (pull !== '' && pull !== 'all' && pull !== 'digest-only' && pull !== 'tag-only') {
    throw new Refused(`pull-from-mirror of ${name} is ${JSON.stringify(pull)}`);
  }
  const insecure = flagAt(table, 'insecure', name);
  return { location, pull: digestOnly ? 'digest-only' : pull === '' ? 'all' : pull, insecure };
}

function locationAt(value: string, field: string): string {
  if (/^https?:\/\//.test(value)) throw new Refused(`${field} ${JSON.stringify(value)} is a URL`);
  return value.replace(/(?<!\/)\/+$/, '');
}

function stringAt(table: Table, field: string, name: string): string {
  const value = table[field] ?? '';
  if (typeof value !== 'string') throw new Refused(`${field} of ${name} is not a string`);
  return value;
}

function flagAt(table: Table, field: string, name: string): boolean {
  const value = table[field] ?? false;
  if (typeof value !== 'boolean') throw new Refused(`${field} of ${name} is not true or false`);
  return value;
}

function stringsAt(value: unknown = [], field: string): string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new Refused(`${field} is not a list of strings`);
}

function tablesAt(value: unknown = [], field: string): Table[] {
  if (Array.isArray(value) && value.every(isTable)) return value;
  throw new Refused(`${field} is not a list of tables`);
}

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** @returns whether a scope stands for every subdomain of a domain, `*.domain`. */
export function isWildcard(scope: string): boolean {
  return scope.startsWith('*.');
}

/**
 * @returns settings of the whole file that stand in the table of a registry or a mirror, with the table's name. TOML
 *   takes them for fields of that table, where they have no effect; the library says so in its debug log alone.
 */
export function misplacedSettings(text: string): readonly string[] {
  const root = inLowerCase(tomlOf(text));
  return tablesAt(root['registry'], 'registry')
    .map(inLowerCase)
    .flatMap((registry) => {
      const mirrors = tablesAt(registry['mirror'], 'mirror').map(inLowerCase);
      return [
        ...settingsAmong(registry).map((name) => `${name} in [[registry]]`),
        ...mirrors.flatMap(settingsAmong).map((name) => `${name} in [[registry.mirror]]`),
      ];
    });
}

const OF_THE_FILE = [
  'unqualified-search-registries',
  'credential-helpers',
  'short-name-mode',
  'additional-layer-store-auth-helper',
  'aliases',
];

function settingsAmong(table: Table): readonly string[] {
  return OF_THE_FILE.filter((name) => Object.hasOwn(table, name));
}
