import { isDeepStrictEqual } from 'node:util';
import { parse } from 'smol-toml';
import type { MirrorKind } from '../api/machine-configuration.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import {
  formatOrigin,
  type RuleOrigin,
  readOrigins,
  SEARCH_REGISTRIES,
} from '../machineconfig/registries/registries-conf.ts';

/** Whether registries.conf can change while pods keep running. */
export type RegistriesConfVerdict = { readonly safe: true } | { readonly safe: false; readonly why: string };

interface Mirror {
  readonly location: string;
  readonly digestOnly: boolean;
}

interface Registry {
  readonly scope: string;
  readonly prefix: string;
  readonly location: string;
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly mirrors: readonly Mirror[];
}

interface RegistriesConf {
  readonly search: readonly string[];
  readonly registries: ReadonlyMap<string, Registry>;
}

const safe: RegistriesConfVerdict = { safe: true };
const unsafe = (why: string): RegistriesConfVerdict => ({ safe: false, why });

/**
 * MCO's rule for the one file whose content it compares (pkg/daemon/drain.go, isSafeContainerRegistryConfChanges): adding
 * mirrors for images by digest is safe under running pods; removing a source, or anything that could resolve a tag to
 * different content, requires a drain.
 *
 * @param from the file's text before; undefined when there was none.
 * @param to the file's text after; undefined when there is none.
 * @param decided changes that a policy decides; only the others are judged.
 */
export function judgeRegistriesConf(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[] = [],
): RegistriesConfVerdict {
  const [before, after] = undecided(from, to, decided);
  if (before === undefined || after === undefined) return unsafe('registries.conf can not be parsed');
  return (
    [
      () => judgeSearch(before.search, after.search),
      ...[...before.registries.values()].map(
        (registry) => () => judgeKept(registry, after.registries.get(registry.scope)),
      ),
      ...[...after.registries.values()].map(
        (registry) => () => judgeNew(registry, before.registries.has(registry.scope)),
      ),
    ]
      .values()
      .map((judge) => judge())
      .find((verdict) => !verdict.safe) ?? safe
  );
}

/** A changed rule for a source, by the kind of its object. */
export interface MirrorRuleChange {
  readonly kind: MirrorKind;
  readonly source: string;
  readonly change: 'added' | 'changed' | 'removed';
}

/** @returns the mirror rules that differ, by the comments that name them in both texts (machineconfig/registries). */
export function mirrorRuleChanges(from: string | undefined, to: string | undefined): MirrorRuleChange[] {
  const before = rulesByKey(from);
  const after = rulesByKey(to);
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((key): MirrorRuleChange[] => {
    const [a, b] = [before.get(key), after.get(key)];
    const rule = b ?? a;
    if (rule === undefined || (a !== undefined && b !== undefined && formatOrigin(a) === formatOrigin(b)))
      return [];
    const change = a === undefined ? 'added' : b === undefined ? 'removed' : 'changed';
    return [{ kind: rule.kind, source: rule.source, change }];
  });
}

function rulesByKey(text = ''): ReadonlyMap<string, RuleOrigin> {
  return new Map(readOrigins(text).map((rule) => [`${rule.kind} ${rule.source}`, rule]));
}

/** @returns whether every difference is decided by a policy. */
export function isAllDecided(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[],
): boolean {
  const [before, after] = undecided(from, to, decided).map(
    (conf) => conf && canonicalJson([conf.search, [...conf.registries]]),
  );
  return before !== undefined && before === after;
}

/**
 * @returns both files without what is decided. A file of Shale's comes with the first mirror rule and goes with the last one,
 *   and so do the search registries that every such file has: whoever decides about all of its rules decides about them.
 */
function undecided(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[],
): readonly [RegistriesConf | undefined, RegistriesConf | undefined] {
  const file = from === undefined ? to : to === undefined ? from : undefined;
  const isDecided = file !== undefined && isWholly(file, decided);
  const rest = (text: string | undefined) => {
    const conf = without(read(text), decided);
    const hasOurs = isDecided && isDeepStrictEqual(conf?.search, SEARCH_REGISTRIES);
    return conf !== undefined && hasOurs ? { ...conf, search: [] } : conf;
  };
  return [rest(from), rest(to)];
}

/** @returns whether a file of Shale's has decided rules and no others. */
function isWholly(file: string, decided: readonly MirrorRuleChange[]): boolean {
  const rules = readOrigins(file);
  return (
    rules.length > 0 &&
    rules.every((rule) => decided.some(({ kind, source }) => kind === rule.kind && source === rule.source))
  );
}

/** Drops the mirrors of decided rules, and registries that have nothing else. */
function without(
  conf: RegistriesConf | undefined,
  decided: readonly MirrorRuleChange[],
): RegistriesConf | undefined {
  if (conf === undefined || decided.length === 0) return conf;
  const registries = [...conf.registries].flatMap(([scope, registry]): [string, Registry][] => {
    const kinds = decided.filter(({ source }) => source === scope).map(({ kind }) => kind);
    if (kinds.length === 0) return [[scope, registry]];
    const forTags = kinds.includes('ImageTagMirrorSet');
    const forDigests = kinds.some((kind) => kind !== 'ImageTagMirrorSet');
    const mirrors = registry.mirrors.filter(({ digestOnly }) => (digestOnly ? !forDigests : !forTags));
    return mirrors.length === 0 && !registry.insecure ? [] : [[scope, { ...registry, mirrors }]];
  });
  return { ...conf, registries: new Map(registries) };
}

function judgeSearch(before: readonly string[], after: readonly string[]): RegistriesConfVerdict {
  const moved = before.find((registry, index) => after[index] !== registry);
  return moved === undefined ? safe : unsafe(`search registry ${moved} is removed or changes position`);
}

function judgeKept(before: Registry, after: Registry | undefined): RegistriesConfVerdict {
  const { scope } = before;
  if (after === undefined) return unsafe(`registry ${scope} is removed`);
  for (const field of ['prefix', 'location', 'blocked', 'insecure'] as const) {
    if (before[field] !== after[field]) return unsafe(`${field} of registry ${scope} changes`);
  }
  const mirrors = new Map(after.mirrors.map((mirror) => [mirror.location, mirror]));
  for (const mirror of before.mirrors) {
    const kept = mirrors.get(mirror.location);
    if (kept === undefined) return unsafe(`mirror ${mirror.location} of ${scope} is removed`);
    if (mirror.digestOnly && !kept.digestOnly)
      return unsafe(`mirror ${mirror.location} of ${scope} is no longer limited to digests`);
  }
  const known = new Set(before.mirrors.map((mirror) => mirror.location));
  return judgeMirrors(
    scope,
    after.mirrors.filter((mirror) => !known.has(mirror.location)),
  );
}

function judgeNew(registry: Registry, known: boolean): RegistriesConfVerdict {
  if (known) return safe;
  if (registry.mirrors.length === 0) return unsafe(`new registry ${registry.scope} has no mirrors`);
  return judgeMirrors(registry.scope, registry.mirrors);
}

function judgeMirrors(scope: string, added: readonly Mirror[]): RegistriesConfVerdict {
  const forTags = added.find((mirror) => !mirror.digestOnly);
  return forTags === undefined
    ? safe
    : unsafe(`new mirror ${forTags.location} of ${scope} is not limited to digests`);
}

/** containers-registries.conf(5), version 2. @returns undefined for text that can't be parsed. */
function read(text: string | undefined): RegistriesConf | undefined {
  if (text === undefined) return { search: [], registries: new Map() };
  try {
    const root = parse(text);
    const registries = tables(root['registry']).map(readRegistry);
    return {
      search: strings(root['unqualified-search-registries']),
      registries: new Map(registries.map((registry) => [registry.scope, registry])),
    };
  } catch {
    return undefined;
  }
}

function readRegistry(table: Readonly<Record<string, unknown>>): Registry {
  const location = text(table['location']);
  const prefix = text(table['prefix']);
  const allDigestOnly = table['mirror-by-digest-only'] === true;
  return {
    scope: prefix === '' ? location : prefix,
    prefix,
    location,
    blocked: table['blocked'] === true,
    insecure: table['insecure'] === true,
    mirrors: tables(table['mirror']).map((mirror) => ({
      location: text(mirror['location']),
      digestOnly: allDigestOnly || mirror['pull-from-mirror'] === 'digest-only',
    })),
  };
}

function tables(value: unknown): Readonly<Record<string, unknown>>[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item) => typeof item === 'object' && item !== null && !Array.isArray(item));
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
