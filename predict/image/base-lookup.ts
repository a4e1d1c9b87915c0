import { outcomeOf } from '../../api/build-outcome.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { type Digest, isByDigest, parseDigest } from '../../api/references.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';

/** What the name of a base image, without a digest, stands for. */
export type BaseLookup =
  | {
      readonly kind: 'found';
      readonly digest: Digest;
      /** Of an index, the image for each architecture (GOARCH); empty for an image. */
      readonly platforms: ReadonlyMap<string, Digest>;
    }
  /** `why`: a clause. */
  | { readonly kind: 'unknown'; readonly why: string };

/** By name. A name that is not in it was not looked up. */
export type BaseLookups = ReadonlyMap<string, BaseLookup>;

/** By pool: each has credentials and mirrors of its own. */
export type PoolLookups = ReadonlyMap<string, BaseLookups>;

/** What a registry says, or why nothing is known: a clause. */
export type RegistryAnswer<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string };

/** What is known of the pools' base images; a pool whose base nobody has read is not in it. */
export type PoolTrees = ReadonlyMap<string, RegistryAnswer<BaseContent>>;

/** @returns the image with its digest behind the tag, as builds name it; as requested where the digest is not known. */
export function pinnedBase(requested: string, lookups: BaseLookups | undefined): string {
  const lookup = lookups?.get(requested);
  return lookup?.kind === 'found' && !isByDigest(requested) ? `${requested}@${lookup.digest}` : requested;
}

/**
 * @returns what nodes can report that they have of a base image that was looked up: one image, or one per architecture.
 */
export function imagesOfBase(requested: string, lookups: BaseLookups | undefined): readonly string[] {
  const lookup = lookups?.get(requested);
  if (lookup?.kind !== 'found') return [];
  const digests = lookup.platforms.size === 0 ? [lookup.digest] : [...new Set(lookup.platforms.values())];
  return digests.map((digest) => byDigest(parseReference(requested), digest));
}

/** @returns the digest of the image that nodes of an architecture get; undefined where it is not known. */
export function digestFor(
  base: string,
  lookups: BaseLookups | undefined,
  architecture: string,
): string | undefined {
  const lookup = lookups?.get(base);
  if (lookup?.kind !== 'found') return undefined;
  return lookup.platforms.size === 0 ? lookup.digest : lookup.platforms.get(architecture);
}

/**
 * What a pool's base image was when its current image was built. A tag may have been moved since.
 *
 * @param config of the pool. @param requested its base image. @param architectures of the pool's nodes, as GOARCH.
 * @returns undefined where the current build does not tell.
 */
export function builtBase(
  config: MachineOSConfig,
  builds: readonly MachineOSBuild[],
  requested: string,
  architectures: readonly string[],
): BaseLookup | undefined {
  const named = config.status?.machineOSBuild?.name;
  const build = builds.find(({ metadata }) => metadata.name === named);
  const base = build?.spec.baseImage;
  if (build === undefined || isByDigest(requested) || base?.startsWith(`${requested}@`) !== true) {
    return undefined;
  }
  const digest = parseDigest(base.slice(requested.length + 1));
  const { instances = [], baseImage } = (outcomeOf(build) === 'Succeeded' && build.status) || {};
  const [only, ...others] = architectures;
  const images =
    instances.length === 0 && only !== undefined && others.length === 0
      ? [{ architecture: only, baseImage }]
      : instances;
  const platforms = images.flatMap(({ architecture, baseImage: image }) => {
    const own = image === undefined ? undefined : parseReference(image).digest;
    return own === undefined ? [] : [[architecture, own] as const];
  });
  return { kind: 'found', digest, platforms: new Map(platforms) };
}

/**
 * @param built what the current image of the pool is based on, if its name is the same. @param asked what registries
 *   say.
 * @returns what the names stand for before and after a change: before it, what the builder found; after it, what the
 *   registries say now. Without an answer, a name is assumed to stand for what it stood for.
 */
export function lookupsAround(
  asked: BaseLookups,
  built: { readonly name: string; readonly base: BaseLookup } | undefined,
): { readonly before: BaseLookups; readonly after: BaseLookups } {
  if (built === undefined) return { before: asked, after: asked };
  const before = new Map([...asked, [built.name, built.base]]);
  return { before, after: asked.get(built.name)?.kind === 'found' ? asked : before };
}
