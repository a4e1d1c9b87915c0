import { isDeepStrictEqual } from 'node:util';
import type { MirrorKind } from '../api/disruption-policy.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import type { MirrorOrigin } from '../machineconfig/registries/mirror-rules.ts';
import {
  formatRuleOrigin,
  readOrigins,
  SEARCH_REGISTRIES,
} from '../machineconfig/registries/registries-conf.ts';
import { examplesOf, pullPlaces, type ReferenceKind, scopeOfExample } from '../oci/pull-places.ts';
import {
  type ConfMirror,
  type ConfRegistry,
  type PullFrom,
  type ReadRegistriesConf,
  type Registries,
  type RegistriesConf,
  readRegistriesConf,
} from '../oci/registries-conf.ts';

/** Why pods may not keep running while registries.conf changes; undefined where they may. */
type Danger = string | undefined;

/**
 * Whether pods may keep running while registries.conf changes. MCO's rule for the one file whose content it compares
 * (pkg/daemon/drain.go, isSafeContainerRegistryConfChanges) allows added mirrors for images by digest. It compares
 * entry by entry, so it misses a source that an image loses because another entry matches it now, or because a mirror
 * is limited to tags or digests. Therefore all images are also compared by the sources that they have: none may lose
 * one, and none may find its tag elsewhere.
 *
 * @param from the file's text before; undefined when there was none.
 * @param to the file's text after; undefined when there is none.
 * @param decided changes that a policy decides; only the others are judged.
 * @returns why not; undefined where they may.
 */
export function dangerOfRegistriesConf(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[] = [],
): Danger {
  const [before, after] = undecided(from, to, decided);
  if (!before.ok) return `the former registries.conf can not be used: ${before.why}`;
  if (!after.ok) return `the new registries.conf can not be used: ${after.why}`;
  return judgeConf(before.conf, after.conf);
}

function judgeConf(before: RegistriesConf, after: RegistriesConf): Danger {
  const added = [...after.registries.values()].filter(({ scope }) => !before.registries.has(scope));
  return [
    () => judgeSearch(before.search, after.search),
    () => judgeSettings(before.settings, after.settings),
    ...[...before.registries.values()].map(
      (registry) => () => judgeKept(registry, after.registries.get(registry.scope)),
    ),
    ...added.map((registry) => () => judgeNew(registry)),
    ...examplesOf([before.registries, after.registries]).map(
      (example) => () => judgeSources(example, before, after),
    ),
  ]
    .values()
    .map((judge) => judge())
    .find((danger) => danger !== undefined);
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
    if (
      rule === undefined ||
      (a !== undefined && b !== undefined && formatRuleOrigin(a) === formatRuleOrigin(b))
    )
      return [];
    const change = a === undefined ? 'added' : b === undefined ? 'removed' : 'changed';
    return [{ kind: rule.kind, source: rule.source, change }];
  });
}

function rulesByKey(text = ''): ReadonlyMap<string, MirrorOrigin> {
  return new Map(readOrigins(text).map((rule) => [`${rule.kind} ${rule.source}`, rule]));
}

/** @returns whether every difference is decided by a policy. */
export function isAllDecided(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[],
): boolean {
  const [before, after] = undecided(from, to, decided).map((read) =>
    read.ok ? canonicalJson([read.conf.search, [...read.conf.registries], read.conf.settings]) : undefined,
  );
  return before !== undefined && before === after;
}

/**
 * @returns both files without what is decided. A file of Shale's comes with the first mirror rule and goes with the
 *   last one, and so do the search registries that every such file has: a policy for all of its rules covers them, too.
 */
function undecided(
  from: string | undefined,
  to: string | undefined,
  decided: readonly MirrorRuleChange[],
): readonly [ReadRegistriesConf, ReadRegistriesConf] {
  const file = from === undefined ? to : to === undefined ? from : undefined;
  const isDecided = file !== undefined && isWholly(file, decided);
  const rest = (text: string | undefined): ReadRegistriesConf => {
    const read = readRegistriesConf(text ?? '');
    if (!read.ok) return read;
    const hasOurs = isDecided && isDeepStrictEqual(read.conf.search, SEARCH_REGISTRIES);
    return {
      ok: true,
      conf: {
        ...read.conf,
        search: hasOurs ? [] : read.conf.search,
        registries: without(read.conf.registries, decided),
      },
    };
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
function without(registries: Registries, decided: readonly MirrorRuleChange[]): Registries {
  const left = [...registries].flatMap(([scope, registry]): [string, ConfRegistry][] => {
    const kinds = decided.filter(({ source }) => source === scope).map(({ kind }) => kind);
    if (kinds.length === 0) return [[scope, registry]];
    const served = new Set(kinds.map((kind) => (kind === 'ImageTagMirrorSet' ? 'tag' : 'digest')));
    const mirrors = registry.mirrors.flatMap((mirror): ConfMirror[] => {
      const pull = undecidedPull(mirror.pull, served);
      return pull === undefined ? [] : [{ ...mirror, pull }];
    });
    return mirrors.length === 0 && !registry.insecure ? [] : [[scope, { ...registry, mirrors }]];
  });
  return new Map(left);
}

/** @returns what a mirror serves that is not decided; undefined for nothing. */
function undecidedPull(pull: PullFrom, decided: ReadonlySet<ReferenceKind>): PullFrom | undefined {
  const byTag = pull !== 'digest-only' && !decided.has('tag');
  const byDigest = pull !== 'tag-only' && !decided.has('digest');
  if (byTag && byDigest) return 'all';
  return byTag ? 'tag-only' : byDigest ? 'digest-only' : undefined;
}

function judgeSearch(before: readonly string[], after: readonly string[]): Danger {
  const moved = before.find((registry, index) => after[index] !== registry);
  return moved && `search registry ${moved} is removed or changes position`;
}

/** An alias can give a short name another image, and a credential helper can make a registry inaccessible. */
function judgeSettings(before: RegistriesConf['settings'], after: RegistriesConf['settings']): Danger {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].find(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );
  return changed && `the setting ${changed} changes`;
}

function judgeKept(before: ConfRegistry, after: ConfRegistry | undefined): Danger {
  const { scope } = before;
  if (after === undefined) return `registry ${scope} is removed`;
  for (const field of ['prefix', 'location', 'blocked', 'insecure'] as const) {
    if (before[field] !== after[field]) return `${field} of registry ${scope} changes`;
  }
  const mirrors = Map.groupBy(after.mirrors, (mirror) => mirror.location);
  for (const mirror of before.mirrors) {
    const kept = mirrors.get(mirror.location);
    if (kept === undefined) return `mirror ${mirror.location} of ${scope} is removed`;
  }
  const known = Map.groupBy(before.mirrors, (mirror) => mirror.location);
  for (const [location, kept] of mirrors) {
    const former = known.get(location);
    if (former?.every(isDigestOnly) === true && !kept.every(isDigestOnly))
      return `mirror ${location} of ${scope} is no longer limited to digests`;
  }
  return judgeMirrors(
    scope,
    after.mirrors.filter((mirror) => !known.has(mirror.location)),
  );
}

function judgeNew({ scope, mirrors }: ConfRegistry): Danger {
  return mirrors.length === 0 ? `new registry ${scope} has no mirrors` : judgeMirrors(scope, mirrors);
}

function judgeMirrors(scope: string, added: readonly ConfMirror[]): Danger {
  const forTags = added.find((mirror) => !isDigestOnly(mirror));
  return forTags && `new mirror ${forTags.location} of ${scope} is not limited to digests`;
}

function isDigestOnly({ pull }: ConfMirror): boolean {
  return pull === 'digest-only';
}

/** Images by digest may get another source; a tag names what the first source that has it says. */
function judgeSources(example: string, before: RegistriesConf, after: RegistriesConf): Danger {
  const subject = (kind: ReferenceKind) => `images of ${scopeOfExample(example)} by ${kind}`;
  const [was, is] = [before, after].map(({ registries }) => ({
    digest: openPlaces(registries, example, 'digest'),
    tag: openPlaces(registries, example, 'tag'),
  }));
  for (const kind of ['digest', 'tag'] as const) {
    const lost = was?.[kind].find((source) => is?.[kind].includes(source) !== true);
    if (lost !== undefined) return `${subject(kind)} can no longer come from ${scopeOfExample(lost)}`;
  }
  const moved = is?.tag.find((source, index) => was?.tag[index] !== source);
  return moved && `${subject('tag')} could come from ${scopeOfExample(moved)} before others`;
}

/**
 * @returns what can be pulled from, each once, followed by ` (insecure)` where TLS is not verified; empty if nothing
 * can be pulled.
 */
function openPlaces(registries: Registries, example: string, kind: ReferenceKind): readonly string[] {
  const places = pullPlaces(registries, example, kind);
  if ('noName' in places) return [];
  const open = places.filter(({ blockedBy }) => blockedBy === undefined);
  return [...new Set(open.map(({ name, insecure }) => (insecure ? `${name} (insecure)` : name)))];
}
