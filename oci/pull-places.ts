import { isFullName, withLibrary } from './image-names.ts';
import { type ConfRegistry, isWildcard, type PullFrom, type Registries } from './registries-conf.ts';

/** How a reference names its content. */
export type ReferenceKind = 'digest' | 'tag';

/** A place that an image may be pulled from. */
export interface PullPlace {
  /** `host[:port]/repository` */
  readonly name: string;
  /** Any certificate will do, and plain HTTP where there is none. */
  readonly insecure: boolean;
  /** Scope of the registry that forbids the place. */
  readonly blockedBy: string | undefined;
}

/**
 * Where the images of a repository can come from, in the order in which they are tried: the mirrors of the registry
 * with the longest matching scope, and its own location last (containers/image: docker, newImageSource;
 * sysregistriesv2, PullSourcesFromReference).
 *
 * A place is forbidden by the registry that its own name matches, and by no other: so a blocked registry with mirrors
 * is pulled from its mirrors alone. Whether TLS is verified is the mirror's or the matching registry's to say, never
 * the place's own registry's.
 *
 * @param repository as references name it, `host[:port]/repository`.
 * @returns at least one place, or the text to which a name is rewritten, if that is not a valid name: it ends the whole
 *   pull.
 */
export function pullPlaces(
  registries: Registries,
  repository: string,
  kind: ReferenceKind,
): readonly PullPlace[] | { readonly noName: string } {
  const name = withLibrary(repository);
  const registry = findRegistry(registries, name);
  if (registry === undefined) return [{ name: repository, insecure: false, blockedBy: undefined }];
  const rest = name.slice(matchedLength(registry.scope, name));
  const places = [...registry.mirrors.filter(({ pull }) => serves(pull, kind)), registry].map(
    ({ location, insecure }) => ({ name: location === '' ? name : `${location}${rest}`, insecure }),
  );
  const noName = places.find((place) => !isFullName(place.name.replaceAll('*', 'x')))?.name;
  if (noName !== undefined) return { noName };
  return places.map((place) => {
    const own = findRegistry(registries, place.name);
    return { ...place, blockedBy: own?.blocked === true ? own.scope : undefined };
  });
}

function serves(pull: PullFrom, kind: ReferenceKind): boolean {
  return pull === 'all' || pull === `${kind}-only`;
}

/**
 * The longest scope decides; of equally long ones the first in byte order (findRegistryWithParsedConfig).
 *
 * @param name `host[:port]/repository`; no tag and no digest, which no scope can match.
 */
export function findRegistry(registries: Registries, name: string): ConfRegistry | undefined {
  return [...registries.values()]
    .filter(({ scope }) => matchedLength(scope, name) >= 0)
    .sort((a, b) => b.scope.length - a.scope.length || (a.scope < b.scope ? -1 : 1))[0];
}

/**
 * A wildcard's domain has to end where it is found first. A scope without a port also matches its host's ports, which
 * land behind the path of a location.
 *
 * @returns how much of a name a scope matches; -1 if it doesn't (refMatchingPrefix).
 */
function matchedLength(scope: string, name: string): number {
  const wanted = isWildcard(scope) ? scope.slice(1) : scope;
  const start = isWildcard(scope) ? name.indexOf(wanted) : name.startsWith(wanted) ? 0 : -1;
  if (start < 0 || name.slice(0, start).includes('/')) return -1;
  const end = start + wanted.length;
  return end === name.length || ':/@'.includes(name.charAt(end)) ? end : -1;
}

/** @returns locations of a registry that can stand before no repository: they end every pull of its scope. */
export function uselessLocations({ location, mirrors }: ConfRegistry): readonly string[] {
  return [...mirrors.map((mirror) => mirror.location), location].filter(
    (each) => each !== '' && !isFullName(`${each}/x/x`),
  );
}

/**
 * @returns repositories that stand for all: two that the same scopes match have the same sources but for their names,
 *   so those within each scope of any file are enough, and the scope itself. No real repository is named like the
 *   former. Two parts, because one alone is completed within docker.io.
 */
export function examplesOf(confs: readonly Registries[]): string[] {
  const scopes = [...new Set(confs.flatMap((conf) => [...conf.keys()]))].sort();
  return scopes.flatMap((scope) => [`${scope}/*`, `${scope}/*/*`, ...(scope.includes('/') ? [scope] : [])]);
}

/** @returns the scope that an example stands for, and likewise a source of it. */
export function scopeOfExample(example: string): string {
  return example.replace(/(?:\/\*)+/, '');
}
