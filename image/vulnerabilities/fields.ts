import { z } from 'zod';
import { type Digest, isDigest } from '../../api/references.ts';
import { SEVERITIES, type Severity } from '../../api/vulnerabilities.ts';

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

/** Words that scanners and CycloneDX have for the same. `none` and `info` are ratings, not the lack of one. */
const WORDS: Readonly<Record<string, Severity>> = {
  ...(Object.fromEntries(SEVERITIES.map((severity) => [severity, severity])) as Record<Severity, Severity>),
  none: 'negligible',
  info: 'negligible',
};

/** A rating in a word, in capitals or not; absent or empty: none is given. */
export const severityWord = z
  .string()
  .nullish()
  .transform((word) => word?.toLowerCase() || undefined)
  .refine((word) => word === undefined || word in WORDS, {
    error: `one of ${Object.keys(WORDS).join(', ')}`,
  })
  .transform((word) => (word === undefined ? undefined : WORDS[word]));

/** @returns the severity that a word stands for; undefined for another word. */
export function severityOfWord(word: string): Severity | undefined {
  return Object.hasOwn(WORDS, word.toLowerCase()) ? WORDS[word.toLowerCase()] : undefined;
}

/** CVSS v3.1, "Qualitative Severity Rating Scale"; v4.0 has the same. */
function severityOfScore(score: number): Severity {
  if (score >= 9) return 'critical';
  if (score >= 7) return 'high';
  if (score >= 4) return 'medium';
  return score > 0 ? 'low' : 'negligible';
}

/**
 * @param word of the rating. @param scores of CVSS, used where no word says more than that nobody knows.
 * @returns the severity; of several scores by the highest.
 */
export function severityFrom(word: Severity | undefined, scores: readonly number[]): Severity {
  if (word !== undefined && word !== 'unknown') return word;
  return scores.length === 0 ? 'unknown' : severityOfScore(Math.max(...scores));
}

/** @returns the severities' worst; `unknown` only where nothing else is there. */
export function worstSeverity(severities: readonly Severity[]): Severity {
  return SEVERITIES.find((severity) => severities.includes(severity)) ?? 'unknown';
}

/** @returns the digests in texts such as `host/repository@sha256:…` and `sha256:…`, each once. */
export function digestsIn(texts: readonly (string | undefined)[]): readonly Digest[] {
  const digests = texts.map((each) => each?.slice(each.lastIndexOf('@') + 1) ?? '').filter(isDigest);
  return [...new Set(digests)];
}
