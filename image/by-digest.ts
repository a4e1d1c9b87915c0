import { type Digest, type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { formatReference, type Reference } from './reference.ts';

/** @returns the pullspec of the image that has a digest in a repository. */
export function byDigest(
  { registry, repository }: Pick<Reference, 'registry' | 'repository'>,
  digest: Digest,
): DigestedPullspec {
  return parseDigestedPullspec(formatReference({ registry, repository, digest }));
}
