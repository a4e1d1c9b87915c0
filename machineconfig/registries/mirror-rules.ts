import type { MirrorKind } from '../../api/disruption-policy.ts';
import type {
  ImageContentSourcePolicy,
  ImageDigestMirrorSet,
  ImageTagMirrorSet,
} from '../../api/image-sources.ts';
import { imageNames, isHostPart } from '../../oci/image-names.ts';
import type { Problem, Validated } from '../problem.ts';

export interface MirrorObjects {
  readonly icsp: readonly ImageContentSourcePolicy[];
  readonly idms: readonly ImageDigestMirrorSet[];
  readonly itms: readonly ImageTagMirrorSet[];
}

/** The merged rules of all objects for one source. */
export interface SourceRule {
  readonly source: string;
  /** In the order in which they are tried. */
  readonly digestMirrors: readonly string[];
  readonly tagMirrors: readonly string[];
  /** The source itself is never contacted. */
  readonly blocked: boolean;
  /** The rules for the source by the kind of their objects. */
  readonly origins: readonly MirrorOrigin[];
}

/** One mirror rule by the kind of object that it comes from. */
export interface MirrorOrigin {
  readonly kind: MirrorKind;
  readonly source: string;
  /** In the order in which they are tried. */
  readonly mirrors: readonly string[];
  /** The source itself is never contacted. */
  readonly never: boolean;
}

interface Given {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly never: boolean;
  /** The object with the rule, for messages. */
  readonly by: string;
}

/**
 * Merges mirror objects by source (openshift/runtime-utils, pkg/registries): mirror lists of several objects
 * become one in which each list's own order holds as far as possible.
 *
 * @returns the rules by source in code-unit order, or the conflicts: a source that one object falls back to and another
 *   never contacts, and sources or mirrors that are no registry, repository or `*.domain`.
 */
export function mergeMirrorObjects({
  icsp,
  idms,
  itms,
}: MirrorObjects): Validated<{ rules: readonly SourceRule[] }> {
  const legacy = icsp.flatMap(({ metadata, spec }) =>
    given(`ImageContentSourcePolicy ${metadata.name}`, spec.repositoryDigestMirrors ?? []),
  );
  const digests = idms.flatMap(({ metadata, spec }) =>
    given(`ImageDigestMirrorSet ${metadata.name}`, spec.imageDigestMirrors ?? []),
  );
  const tags = itms.flatMap(({ metadata, spec }) =>
    given(`ImageTagMirrorSet ${metadata.name}`, spec.imageTagMirrors ?? []),
  );
  const all = [...legacy, ...digests, ...tags];
  const problems = [...all.flatMap(malformed), ...contradicted(all), ...all.flatMap(mirrorsItself)];
  if (problems.length > 0) return { ok: false, problems };
  const sources = [...new Set(all.filter(hasMirror).map((rule) => rule.source))].sort();
  return {
    ok: true,
    rules: sources.map((source) => ({
      source,
      digestMirrors: mergeMirrors(source, [...legacy, ...digests]),
      tagMirrors: mergeMirrors(source, tags),
      blocked: all.some((rule) => rule.source === source && rule.never && hasMirror(rule)),
      origins: [
        ...originOf('ImageContentSourcePolicy', source, legacy),
        ...originOf('ImageDigestMirrorSet', source, digests),
        ...originOf('ImageTagMirrorSet', source, tags),
      ],
    })),
  };
}

function given(
  by: string,
  rules: readonly { source: string; mirrors?: string[]; mirrorSourcePolicy?: string }[],
): Given[] {
  return rules.map(({ source, mirrors = [], mirrorSourcePolicy }) => ({
    source,
    mirrors,
    never: mirrorSourcePolicy === 'NeverContactSource',
    by,
  }));
}

/**
 * A rule without a mirror other than its source mirrors nothing, and says nothing about contacting the source either
 * (openshift/runtime-utils, addMirrorSet).
 */
function hasMirror({ source, mirrors }: Given): boolean {
  return mirrors.some((mirror) => mirror !== source);
}

function originOf(kind: MirrorKind, source: string, rules: readonly Given[]): MirrorOrigin[] {
  const own = rules.filter((rule) => rule.source === source && hasMirror(rule));
  if (own.length === 0) return [];
  return [{ kind, source, mirrors: mergeMirrors(source, own), never: own.some(({ never }) => never) }];
}

/**
 * @returns the mirrors of all rules for a source. The source is always tried last; it is in the list only where a rule
 *   names it before a mirror.
 */
function mergeMirrors(source: string, rules: readonly Given[]): string[] {
  const lists = rules
    .filter((rule) => rule.source === source && hasMirror(rule))
    .map(({ mirrors }) => mirrors);
  const named = lists.some((list) => list.includes(source));
  const merged = mergeLists(
    named ? lists.map((list) => (list.includes(source) ? list : [...list, source])) : lists,
  );
  return merged.at(-1) === source ? merged.slice(0, -1) : merged;
}

function malformed({ source, mirrors, by }: Given): Problem[] {
  const problems = imageNames.scope.test(source)
    ? []
    : [
        {
          path: by,
          reason: `${JSON.stringify(source)} is no registry or repository`,
          expected: 'host[:port][/repository], or *.domain',
        },
      ];
  const unusable = mirrors.filter((mirror) => !imageNames.mirror.test(mirror) || !hasFullHost(mirror));
  return [
    ...problems,
    ...unusable.map((mirror) => ({
      path: by,
      reason: `${JSON.stringify(mirror)} is no registry or repository that can be a mirror`,
      expected: 'host[:port][/repository], where a host without a port has a dot or is localhost',
    })),
  ];
}

/**
 * A reference whose first part is none of these is one of docker.io, and each pull from such a mirror's source fails.
 */
function hasFullHost(mirror: string): boolean {
  const [host = ''] = mirror.split('/');
  return isHostPart(host);
}

/**
 * A source is either never contacted or fallen back to, whatever kind of object says so; an ImageContentSourcePolicy
 * always falls back (MCO, validateRegistriesConfScopes).
 */
function contradicted(all: readonly Given[]): Problem[] {
  return all
    .filter(({ never }) => never)
    .flatMap((rule) => {
      const other = all.find(({ source, never }) => source === rule.source && !never);
      if (other === undefined) return [];
      return [
        {
          path: `${rule.by}, source ${rule.source}`,
          reason: `is NeverContactSource while ${other.by} mirrors the same source and falls back to it`,
          expected: 'one of the two for a source',
        },
      ];
    });
}

function mirrorsItself({ source, mirrors, never, by }: Given): Problem[] {
  if (!mirrors.includes(source) || !never) return [];
  return [
    {
      path: `${by}, source ${source}`,
      reason: 'is NeverContactSource and names the source among its mirrors',
      expected: 'other mirrors, or AllowContactingSource',
    },
  ];
}

/**
 * Merges lists into one that keeps the order of each (a topological order); where they contradict each other, the
 * alphabetically first of what is left breaks the loop.
 */
export function mergeLists(lists: readonly (readonly string[])[]): string[] {
  const before = new Map<string, Set<string>>();
  for (const list of lists) {
    for (const [index, item] of list.entries()) {
      const predecessors = before.get(item) ?? new Set();
      before.set(item, predecessors);
      const previous = list[index - 1];
      if (previous !== undefined && previous !== item) predecessors.add(previous);
    }
  }
  const merged: string[] = [];
  const left = new Set([...before.keys()].sort());
  while (left.size > 0) {
    const [first = ''] = left;
    const next =
      [...left].find((item) => [...(before.get(item) ?? [])].every((other) => !left.has(other))) ?? first;
    left.delete(next);
    merged.push(next);
  }
  return merged;
}
