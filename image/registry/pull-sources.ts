import { formatReference, parseReference, type Reference, withLibrary } from '../reference.ts';
import type { RegistriesConf, RegistryRule } from './registries-conf.ts';

/** A place that may be pulled from. */
export interface OpenSource {
  readonly kind: 'open';
  readonly reference: Reference;
  /** Any certificate will do, and plain HTTP where there is none. */
  readonly insecure: boolean;
}

/** A place where an image is. */
export type PullSource =
  | OpenSource
  | {
      readonly kind: 'blocked';
      readonly reference: Reference;
      /** Prefix of the registry that forbids it. */
      readonly by: string;
    };

/**
 * Says where an image is pulled from (containers-registries.conf(5)): the mirrors of the registry with the longest
 * matching prefix, and the registry itself last. Pure.
 *
 * A blocked registry with mirrors is pulled from its mirrors alone: so NeverContactSource of OpenShift's mirror sets is
 * written. A place that is rewritten to is forbidden where its own registry is blocked.
 *
 * @returns at least one place, in the order in which they are tried.
 * @throws TypeError when what a prefix is rewritten to is no image's name.
 */
export function pullSources(reference: Reference, { registries }: RegistriesConf): readonly PullSource[] {
  const match = findRule(reference, registries);
  if (match === undefined) return [{ kind: 'open', reference, insecure: false }];
  const { rule, rest } = match;
  const isDigested = reference.digest !== undefined;
  const mirrors = rule.mirrors
    .filter(({ use }) => use === 'all' || (use === 'digest-only') === isDigested)
    .map((mirror) => sourceAt(rewritten(reference, mirror.location, rest), mirror.insecure, registries));
  const itself = rewritten(reference, rule.location, rest);
  return [
    ...mirrors,
    rule.blocked
      ? { kind: 'blocked', reference: itself, by: rule.prefix }
      : sourceAt(itself, rule.insecure, registries),
  ];
}

function sourceAt(reference: Reference, insecure: boolean, registries: readonly RegistryRule[]): PullSource {
  const rule = findRule(reference, registries)?.rule;
  return rule?.blocked === true
    ? { kind: 'blocked', reference, by: rule.prefix }
    : { kind: 'open', reference, insecure };
}

/** @returns whether the registry of a place may have any certificate, or none. */
export function isInsecure(reference: Reference, { registries }: RegistriesConf): boolean {
  return findRule(reference, registries)?.rule.insecure === true;
}

function rewritten(reference: Reference, location: string | undefined, rest: string): Reference {
  return location === undefined ? reference : parseReference(`${location}${rest}`);
}

interface Match {
  readonly rule: RegistryRule;
  /** What follows the prefix in the reference's text. */
  readonly rest: string;
}

/** The longest prefix counts. A wildcard is as long as it is written; a name of the same length is more precise. */
function findRule(reference: Reference, registries: readonly RegistryRule[]): Match | undefined {
  const name = formatReference(withLibrary(reference));
  let best: Match | undefined;
  for (const rule of registries) {
    const rest = afterPrefix(name, rule.prefix);
    if (rest !== undefined && (best === undefined || isCloser(rule.prefix, best.rule.prefix)))
      best = { rule, rest };
  }
  return best;
}

function isCloser(prefix: string, other: string): boolean {
  return prefix.length > other.length || (prefix.length === other.length && other.startsWith('*.'));
}

/** @returns what follows the prefix; undefined where the name doesn't begin with it. */
function afterPrefix(name: string, prefix: string): string | undefined {
  if (prefix.startsWith('*.')) return afterWildcard(name, prefix.slice(1));
  // A colon after a bare host is a port, and so another registry; after a repository it begins a tag.
  return after(name, prefix, prefix.includes('/') ? /^(?:$|[/:@])/ : /^\//);
}

/** A wildcard stands for any subdomain, with any port; never for the domain itself. @param suffix begins with its dot. */
function afterWildcard(name: string, suffix: string): string | undefined {
  const [domain = ''] = suffix.split('/', 1);
  const [host = ''] = /^[^:/]*/.exec(name) ?? [];
  if (!host.endsWith(domain)) return undefined;
  return after(name.slice(host.length), suffix.slice(domain.length), /^(?:$|[/:@])/);
}

function after(name: string, beginning: string, end: RegExp): string | undefined {
  const rest = name.slice(beginning.length);
  return name.startsWith(beginning) && end.test(rest) ? rest : undefined;
}
