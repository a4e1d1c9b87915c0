import { type Digest, type DigestedPullspec, parseDigest, parseDigestedPullspec } from '../api/references.ts';
import { imageNames, isHostPart } from '../oci/image-names.ts';

/** An image's name: where it is, and which one. */
export interface Reference {
  /** `host` or `host:port`; an IPv6 address stands in brackets. Always given: no registry is assumed. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
}

/** Where images are, whichever. */
export type Repository = Pick<Reference, 'registry' | 'repository'>;

/** @returns the repository alone of a name, to be joined with another tag or digest. */
export function bareRepository({ registry, repository }: Repository): Repository {
  return { registry, repository };
}

/**
 * Parses `host[:port]/repository[:tag][@digest]`.
 *
 * @throws TypeError that says which part is wrong and what would be right. A host is required, because Docker's habit
 *   of assuming docker.io would send a node to a registry that nobody named.
 */
export function parseReference(text: string): Reference {
  const wrong = (what: string): never => {
    throw new TypeError(`image ${JSON.stringify(text)}: ${what}`);
  };
  const [name = '', digestText, ...more] = text.split('@');
  if (more.length > 0) wrong('has more than one @');
  const slash = name.indexOf('/');
  const registry = name.slice(0, Math.max(slash, 0));
  if (slash === -1 || !isHostPart(registry)) {
    wrong('has no registry host; expected host[:port]/repository');
  }
  if (!isHost(registry)) wrong(`${JSON.stringify(registry)} is no host; expected host or host:port`);
  const rest = name.slice(slash + 1);
  const colon = rest.indexOf(':');
  const repository = colon === -1 ? rest : rest.slice(0, colon);
  if (!imageNames.repository.test(repository))
    wrong(
      `${JSON.stringify(repository)} is no repository; expected lowercase letters, digits and . _ - between slashes`,
    );
  const tag = colon === -1 ? undefined : rest.slice(colon + 1);
  if (tag !== undefined && !imageNames.tag.test(tag))
    wrong(`${JSON.stringify(tag)} is no tag; expected up to 128 letters, digits and . _ -`);
  return {
    registry,
    repository,
    ...(tag === undefined ? {} : { tag }),
    ...(digestText === undefined ? {} : { digest: parseDigest(digestText) }),
  };
}

/**
 * Of what the grammar allows, URL refuses a port above 65535, a wrong IPv6 address, and a name that ends in a number
 * and is no IPv4 address.
 */
function isHost(text: string): boolean {
  return imageNames.host.test(text) && !/:0+$/.test(text) && URL.canParse(`https://${text}`);
}

/** @returns the text that parseReference reads. */
export function formatReference({ registry, repository, tag, digest }: Reference): string {
  return `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** @returns what a registry is asked for: the digest where there is one, else the tag, else `latest`. */
export function manifestKey({ tag, digest }: Reference): string {
  return digest ?? tag ?? 'latest';
}

/** @returns the pullspec of the image that has a digest in a repository. */
export function byDigest(at: Repository, digest: Digest): DigestedPullspec {
  return parseDigestedPullspec(formatReference({ ...bareRepository(at), digest }));
}
