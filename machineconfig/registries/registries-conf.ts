import { MirrorKind } from '../../api/disruption-policy.ts';
import { type ConfMirror, isWildcard } from '../../oci/registries-conf.ts';
import type { MirrorOrigin, SourceRule } from './mirror-rules.ts';
import type { RegistryEntry } from './registry-entries.ts';

/** Where images without a registry in their name are looked for in every file that Shale writes (MCO's template). */
export const SEARCH_REGISTRIES: readonly string[] = ['registry.access.redhat.com', 'docker.io'];
const HEAD = `${formatSearchRegistries(SEARCH_REGISTRIES)}short-name-mode = ""\n`;

/**
 * Writes a registries.conf (containers-registries.conf(5), version 2).
 *
 * @param rules where the mirrors come from; they become comments.
 * @param entries as registryEntries gives them.
 * @returns the file's text: the same for the same input, a `[[registry]]` for each entry.
 */
export function formatRegistriesConf(
  rules: readonly SourceRule[],
  entries: readonly RegistryEntry[],
): string {
  return [origins(rules), HEAD, ...entries.map(registry)].filter((part) => part !== '').join('\n');
}

/** @returns a drop-in that names where images without a registry in their name are looked for. */
export function formatSearchRegistries(registries: readonly string[]): string {
  return `unqualified-search-registries = [${registries.map(quote).join(', ')}]\n`;
}

/**
 * Comments with the kind of object of each rule, for readers of the file on a node and for the decision what a change
 * of the rule requires (spec.nodeDisruptionPolicy.imageMirrors): the format itself has no field for it.
 */
function origins(rules: readonly SourceRule[]): string {
  const lines = rules.flatMap(({ origins }) => origins.map(formatRuleOrigin));
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function registry({ scope, blocked, insecure, mirrors }: RegistryEntry): string {
  const wildcard = isWildcard(scope);
  const lines = [
    '[[registry]]',
    // A wildcard is a prefix; its location stays empty, and images keep the host they name.
    `  prefix = ${wildcard ? quote(scope) : '""'}`,
    ...(wildcard ? [] : [`  location = ${quote(scope)}`]),
    ...(insecure ? ['  insecure = true'] : []),
    ...(blocked ? ['  blocked = true'] : []),
    ...mirrors.flatMap(mirrorLines),
  ];
  return `${lines.join('\n')}\n`;
}

function mirrorLines({ location, pull, insecure }: ConfMirror): string[] {
  return [
    '',
    '  [[registry.mirror]]',
    `    location = ${quote(location)}`,
    ...(insecure ? ['    insecure = true'] : []),
    ...(pull === 'all' ? [] : [`    pull-from-mirror = "${pull}"`]),
  ];
}

/** Scopes and mirrors have been checked and hold nothing that a basic TOML string would have to escape. */
function quote(text: string): string {
  return JSON.stringify(text);
}

const NEVER = ' (NeverContactSource)';

/** @returns the rule as a comment of registries.conf: `# ImageDigestMirrorSet: a.example.org -> b.example.org/a`. */
export function formatRuleOrigin({ kind, source, mirrors, never }: MirrorOrigin): string {
  return `# ${kind}: ${source} -> ${mirrors.join(', ')}${never ? NEVER : ''}`;
}

/** @returns the rules in the comments of a registries.conf; empty for a file that Shale did not write. */
export function readOrigins(registriesConf: string): MirrorOrigin[] {
  return registriesConf.split('\n').flatMap((line): MirrorOrigin[] => {
    const [, name, source, rest] = /^# (\w+): (\S+) -> (.*)$/.exec(line) ?? [];
    const kind = MirrorKind.safeParse(name);
    if (!kind.success || source === undefined || rest === undefined) return [];
    const never = rest.endsWith(NEVER);
    const mirrors = (never ? rest.slice(0, -NEVER.length) : rest)
      .split(', ')
      .filter((mirror) => mirror !== '');
    return [{ kind: kind.data, source, mirrors, never }];
  });
}
