import { by } from '../../api/order.ts';
import { type ConfMirror, type ConfRegistry, isWildcard, type PullFrom } from '../../oci/registries-conf.ts';
import type { Problem, Validated } from '../problem.ts';
import type { SourceRule } from './mirror-rules.ts';
import type { RegistrySources } from './registry-sources.ts';
import { isNested } from './scopes.ts';

/** One `[[registry]]` of registries.conf that Shale writes: its mirrors first, and the scope itself last. */
export type RegistryEntry = Omit<ConfRegistry, 'prefix' | 'location'>;

/**
 * Joins mirrors with insecure and blocked scopes. The format takes the most precise match alone, so a scope inside of
 * an insecure, blocked or mirrored one repeats what holds for that (openshift/runtime-utils, EditRegistriesConfig).
 *
 * @returns an entry for each scope in code-unit order, or what can't be written: a scope inside of a wildcard that has
 *   mirrors, whose mirrors can't be repeated for it.
 */
export function registryEntries(
  rules: readonly SourceRule[],
  { insecure, blocked }: Pick<RegistrySources, 'insecure' | 'blocked'>,
): Validated<{ entries: readonly RegistryEntry[] }> {
  const scopes = [...new Set([...rules.map(({ source }) => source), ...insecure, ...blocked])].sort();
  const within = (scope: string, outer: readonly string[]) => outer.some((each) => isNested(scope, each));
  const own = new Map(rules.map((rule) => [rule.source, mirrorsOf(rule)]));
  const problems: Problem[] = [];
  const entries = scopes.map((scope): RegistryEntry => {
    const rule = rules.find(({ source }) => source === scope);
    const inherited = rule === undefined ? inheritedMirrors(scope, rules, own) : undefined;
    if (inherited?.problem !== undefined) problems.push(inherited.problem);
    const mirrors = own.get(scope) ?? inherited?.mirrors ?? [];
    return {
      scope,
      blocked: rule?.blocked === true || within(scope, blocked),
      insecure: within(scope, insecure),
      mirrors: mirrors.map((mirror) => ({ ...mirror, insecure: within(mirror.location, insecure) })),
    };
  });
  return problems.length === 0 ? { ok: true, entries } : { ok: false, problems };
}

type Mirror = Omit<ConfMirror, 'insecure'>;

/**
 * Digest mirrors come before tag mirrors, each for its own kind of reference. A mirror for both is written once, unless
 * the two kinds try their mirrors in different orders.
 */
function mirrorsOf({ digestMirrors, tagMirrors }: SourceRule): readonly Mirror[] {
  const both = new Set(digestMirrors.filter((mirror) => tagMirrors.includes(mirror)));
  const tagsAlone = tagMirrors.filter((mirror) => !both.has(mirror));
  const isOneOrder = [...both, ...tagsAlone].every((mirror, index) => mirror === tagMirrors[index]);
  const mirrors = (locations: readonly string[], pullOf: (location: string) => PullFrom) =>
    locations.map((location): Mirror => ({ location, pull: pullOf(location) }));
  const isForBoth = (location: string) => isOneOrder && both.has(location);
  return [
    ...mirrors(digestMirrors, (location) => (isForBoth(location) ? 'all' : 'digest-only')),
    ...mirrors(isOneOrder ? tagsAlone : tagMirrors, () => 'tag-only'),
  ];
}

function inheritedMirrors(
  scope: string,
  rules: readonly SourceRule[],
  own: ReadonlyMap<string, readonly Mirror[]>,
): { readonly mirrors: readonly Mirror[]; readonly problem?: Problem } {
  const outer = rules
    .map(({ source }) => source)
    .filter((source) => source !== scope && isNested(scope, source))
    .sort(by(({ length }) => -length))[0];
  if (outer === undefined) return { mirrors: [] };
  if (isWildcard(outer)) {
    const reason = `lies within ${outer}, whose mirrors can't be repeated for it`;
    return {
      mirrors: [],
      problem: { path: scope, reason, expected: `mirrors of its own, or none for ${outer}` },
    };
  }
  const rest = scope.slice(outer.length);
  return {
    mirrors: (own.get(outer) ?? []).map((mirror) => ({ ...mirror, location: `${mirror.location}${rest}` })),
  };
}
