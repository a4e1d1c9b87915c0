import type { SourceRule } from './mirror-rules.ts';
import { formatOrigin } from './rule-origin.ts';

/**
 * Writes a registries.conf (containers-registries.conf(5), version 2).
 *
 * @param rules as mergeMirrorObjects gives them.
 * @returns the file's text: the same for the same rules, a `[[registry]]` for each source.
 */
export function formatRegistriesConf(rules: readonly SourceRule[]): string {
  const head =
    'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\nshort-name-mode = ""\n';
  return [origins(rules), head, ...rules.map(registry)].filter((part) => part !== '').join('\n');
}

/**
 * Comments that say which kind of object each rule comes from: for whoever reads the file on a node, and for the decision
 * what a change of the rule asks (spec.nodeDisruptionPolicy.imageMirrors); the format itself knows no such thing.
 */
function origins(rules: readonly SourceRule[]): string {
  const lines = rules.flatMap(({ source, origins }) =>
    origins.map(({ kind, mirrors, never }) => formatOrigin({ kind, source, mirrors, never })),
  );
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function registry({ source, digestMirrors, tagMirrors, blocked }: SourceRule): string {
  const wildcard = source.startsWith('*.');
  const forBoth = new Set(digestMirrors.filter((mirror) => tagMirrors.includes(mirror)));
  const lines = [
    '[[registry]]',
    // A wildcard is a prefix; its location stays empty, and images keep the host they name.
    `  prefix = ${wildcard ? quote(source) : '""'}`,
    ...(wildcard ? [] : [`  location = ${quote(source)}`]),
    ...(blocked ? ['  blocked = true'] : []),
  ];
  // Digest mirrors come before tag mirrors, each for its own kind of reference (runtime-utils, EditRegistriesConfig).
  for (const mirror of digestMirrors)
    lines.push(...mirrorLines(mirror, forBoth.has(mirror) ? undefined : 'digest-only'));
  for (const mirror of tagMirrors) if (!forBoth.has(mirror)) lines.push(...mirrorLines(mirror, 'tag-only'));
  return `${lines.join('\n')}\n`;
}

function mirrorLines(location: string, pull: 'digest-only' | 'tag-only' | undefined): string[] {
  return [
    '',
    '  [[registry.mirror]]',
    `    location = ${quote(location)}`,
    ...(pull === undefined ? [] : [`    pull-from-mirror = "${pull}"`]),
  ];
}

/** Sources and mirrors have been checked and hold nothing that a basic TOML string would have to escape. */
function quote(text: string): string {
  return JSON.stringify(text);
}
