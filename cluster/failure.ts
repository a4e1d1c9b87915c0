import { cutText } from '../api/cut-text.ts';
import { errorMessage } from '../api/error-message.ts';
import type { FailureKind } from '../api/failing-step.ts';
import { maskCredentials } from '../api/secret-text.ts';
import { ApiError, ApiUnreachable, isConflict } from './api-client.ts';

export interface Failure {
  readonly kind: FailureKind;
  /** The request and the API server's own words, of a length that fits into a condition. */
  readonly why: string;
  /** ms for which the API server asks to wait; absent: it asks for nothing. */
  readonly retryAfterMs?: number;
}

/**
 * For how long a step fails before it is reported, in ms. A refused request stays refused until somebody changes
 * something; but an API server that has just started may refuse permitted requests for seconds, because its authorizer
 * has not read any roles yet.
 */
export const REPORT_AFTER: Readonly<Record<FailureKind, number>> = {
  Refused: 15_000,
  Unexpected: 60_000,
  Throttled: 180_000,
  Unavailable: 180_000,
  Conflict: 600_000,
};

/** ms; a longer Retry-After is shortened to it. */
const LONGEST_RETRY_AFTER = 300_000;

/**
 * @returns the kind of an error, and what it says to people. Of several errors the first that is no conflict decides.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const all = error.errors.map(failureOf);
    const decisive = all.find(({ kind }) => kind !== 'Conflict') ?? all[0];
    if (decisive !== undefined) return decisive;
  }
  const why = wordsOf(errorMessage(error));
  if (error instanceof ApiUnreachable) return { kind: 'Unavailable', why };
  if (!(error instanceof ApiError)) return { kind: 'Unexpected', why };
  const seconds = error.retryAfterSeconds ?? 0;
  const asked = seconds > 0 ? { retryAfterMs: Math.min(seconds * 1000, LONGEST_RETRY_AFTER) } : {};
  return { kind: kindOf(error), why, ...asked };
}

function kindOf(error: ApiError): FailureKind {
  if (isConflict(error)) return 'Conflict';
  if (error.status === 429) return 'Throttled';
  // 408: the server gave up waiting for the request.
  return error.status >= 500 || error.status === 408 ? 'Unavailable' : 'Refused';
}

/**
 * @returns whether the API server has certainly not done what it was asked for: it answered, and by another status than
 *   the one for a request that ran into its own deadline.
 */
export function isNotDone(error: unknown): boolean {
  return error instanceof ApiError && error.status !== 504 && error.status !== 408;
}

/** Webhooks may say as much as they like. */
const LONGEST_WORDS = 500;
/** A rejected value is quoted as a whole ("Invalid value"): it may be the content of a file. */
const LONG_VALUE = /"(?:[^"\\]|\\.){80,}"/g;

/**
 * @returns what an API server or a webhook says, as one line of a limited length, without credentials and long values
 * of objects.
 */
export function wordsOf(text: string): string {
  // Messages are lists whose parts a semicolon divides.
  const line = maskCredentials(text)
    .replace(LONG_VALUE, '"…"')
    .replaceAll(';', ',')
    .replace(/\s+/g, ' ')
    .trim();
  return cutText(line, LONGEST_WORDS);
}
