import {
  type ConfRegistry,
  isWildcard,
  type PullFrom,
  type RuntimeRegistriesConf,
} from './registries-conf.ts';

/** How a reference names its content. */
export type ReferenceKind = 'digest' | 'tag';

/**
 * Where the images of a repository can come from, in the order in which they are tried
 * (containers/image, PullSourcesFromReference).
 *
 * @param repository as references name it: `host[:port]/path`.
 * @returns repositories, followed by ` (insecure)` where TLS is not verified; empty if nothing can be pulled.
 */
export function pullPlaces(conf: RuntimeRegistriesConf, repository: string, kind: ReferenceKind): string[] {
  const registry = findRegistry(conf, repository);
  if (registry === undefined) return [repository];
  const rest = repository.slice(matchedLength(registry.scope, repository));
  const mirrors = registry.mirrors.filter(({ pull }) => serves(pull, kind));
  const own = registry.location === '' ? repository : `${registry.location}${rest}`;
  const places = [
    ...mirrors.map(({ location, insecure }) => ({ at: `${location}${rest}`, insecure })),
    { at: own, insecure: registry.insecure },
  ];
  // One name that is none ends the whole pull.
  if (!places.every(({ at }) => isRepository(at))) return [];
  return places.flatMap(({ at, insecure }) => {
    // What is pulled from is looked up itself: a blocked host is none of another's mirrors either.
    const host = findRegistry(conf, at);
    if (host?.blocked === true) return [];
    return [insecure || host?.insecure === true ? `${at} (insecure)` : at];
  });
}

/**
 * A host alone is none, which is what remains of an image that is a scope itself if a mirror is a host. A scope without a port
 * also matches its host's ports, which land behind a path when the scope is replaced.
 */
function isRepository(at: string): boolean {
  const [host = '', ...path] = at.split('/');
  return (
    path.length > 0 &&
    !path.some((part) => part.includes(':')) &&
    (host.startsWith('[') || host.split(':').length <= 2)
  );
}

function serves(pull: PullFrom, kind: ReferenceKind): boolean {
  return pull === 'all' || pull === `${kind}-only`;
}

/** The longest scope decides; of equally long ones the first in byte order (findRegistryWithParsedConfig). */
function findRegistry(conf: RuntimeRegistriesConf, repository: string): ConfRegistry | undefined {
  return [...conf.registries.values()]
    .filter(({ scope }) => matchedLength(scope, repository) >= 0)
    .sort((a, b) => b.scope.length - a.scope.length || (a.scope < b.scope ? -1 : 1))[0];
}

/** @returns how much of a repository a scope matches; -1 if it doesn't (refMatchingPrefix). */
function matchedLength(scope: string, repository: string): number {
  const wanted = isWildcard(scope) ? scope.slice(1) : scope;
  const start = isWildcard(scope) ? repository.indexOf(wanted) : repository.startsWith(wanted) ? 0 : -1;
  if (start < 0 || repository.slice(0, start).includes('/')) return -1;
  const end = start + wanted.length;
  return end === repository.length || ':/@'.includes(repository.charAt(end)) ? end : -1;
}

/**
 * @returns repositories that stand for all: two that the same scopes match have the same sources but for their names, so one
 *   within each scope of any file is enough, and the scope itself. No real repository is named like the former.
 */
export function examplesOf(confs: readonly RuntimeRegistriesConf[]): string[] {
  const scopes = [...new Set(confs.flatMap((conf) => [...conf.registries.keys()]))].sort();
  return scopes.flatMap((scope) => [`${scope}${EXAMPLE}`, ...(scope.includes('/') ? [scope] : [])]);
}

const EXAMPLE = '/*';

/** @returns the scope that an example stands for, and likewise a source of it. */
export function scopeOfExample(example: string): string {
  return example.replace(EXAMPLE, '');
}
