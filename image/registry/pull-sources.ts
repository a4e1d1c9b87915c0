import { withLibrary } from '../../oci/image-names.ts';
import { findRegistry, pullPlaces } from '../../oci/pull-places.ts';
import type { Registries } from '../../oci/registries-conf.ts';
import { formatReference, parseReference, type Reference } from '../reference.ts';

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
      /** Scope of the registry that forbids it. */
      readonly by: string;
    };

/**
 * @returns the places that an image is pulled from, at least one, in the order in which they are tried.
 * @throws TypeError when what a registry's scope is replaced by is no image's name.
 */
export function pullSources(
  { tag, digest, ...name }: Reference,
  registries: Registries,
): readonly PullSource[] {
  const repository = formatReference(name);
  const places = pullPlaces(registries, repository, digest === undefined ? 'tag' : 'digest');
  if ('noName' in places) {
    throw new TypeError(`registries.conf makes ${places.noName} of ${repository}, which is no image's name`);
  }
  return places.map((place): PullSource => {
    const reference = { ...parseReference(place.name), ...(tag && { tag }), ...(digest && { digest }) };
    if (place.blockedBy !== undefined) return { kind: 'blocked', reference, by: place.blockedBy };
    return { kind: 'open', reference, insecure: place.insecure };
  });
}

/** @returns whether the registry of a place that is written to may have any certificate, or none. */
export function isInsecure({ registry, repository }: Reference, registries: Registries): boolean {
  return findRegistry(registries, withLibrary(`${registry}/${repository}`))?.insecure === true;
}
