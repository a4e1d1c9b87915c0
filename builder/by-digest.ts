import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import type { Digest } from '../image/digest.ts';
import { formatReference, type Reference } from '../image/reference.ts';

/** @returns the image of a repository that has a digest. */
export function byDigest(
  { registry, repository }: Pick<Reference, 'registry' | 'repository'>,
  digest: Digest,
): DigestedPullspec {
  return parseDigestedPullspec(formatReference({ registry, repository, digest }));
}
