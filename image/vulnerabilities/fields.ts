import { z } from 'zod';
import { type Digest, isDigest } from '../../api/references.ts';

/** Fields of reports. Programs in Go write null for a list without items, and '' for what is not known. */

/** Findings of one report; that of an image with everything in it has some ten thousand. */
const MOST_FINDINGS = 100_000;
/** Characters of an id, a version or a package's name. */
const LONGEST = 1024;

export const shortText = z.string().max(LONGEST);
export const optionalText = shortText.nullish().transform((value) => value || undefined);

/** @returns the schema of a list that may be absent. */
export function list<Item extends z.ZodType>(item: Item, most = MOST_FINDINGS) {
  return z
    .array(item)
    .max(most)
    .nullish()
    .transform((items) => items ?? []);
}

/** @returns the digests in texts such as `host/repository@sha256:…` and `sha256:…`, each once. */
export function digestsIn(texts: readonly (string | undefined)[]): readonly Digest[] {
  const digests = texts.map((each) => each?.slice(each.lastIndexOf('@') + 1) ?? '').filter(isDigest);
  return [...new Set(digests)];
}
