import { z } from 'zod';
import { SEVERITIES, type Severity } from '../../api/vulnerabilities.ts';

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
