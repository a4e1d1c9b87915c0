import { setTimeout as delay } from 'node:timers/promises';
import type { RegistryError } from './registry-error.ts';

/** How often one request is sent. */
export const ATTEMPTS = 4;
const FIRST_RETRY_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;
/** A registry that asks for a longer pause is left to the caller: a build waits for its next attempt, not in the middle. */
const LONGEST_PAUSE_MS = 60_000;

/** RFC 9110, 5.6.7: the form that is sent nowadays. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Says how long to wait before a request is sent again. Pure.
 *
 * @param attempt that failed, from 1.
 * @returns ms; undefined where it should not be sent again.
 */
export function retryDelay(
  attempt: number,
  { temporary, retryAfterMs = 0 }: RegistryError,
): number | undefined {
  if (!temporary || attempt >= ATTEMPTS || retryAfterMs > LONGEST_PAUSE_MS) return undefined;
  return Math.max(Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LONGEST_BACKOFF_MS), retryAfterMs);
}

/** Waits before the next attempt. @throws the failure where there should be none. */
export async function pauseOrThrow(
  attempt: number,
  failure: RegistryError,
  signal: AbortSignal,
): Promise<void> {
  const ms = signal.aborted ? undefined : retryDelay(attempt, failure);
  if (ms === undefined) throw failure;
  await delay(ms, undefined, { signal });
}

/**
 * Reads a Retry-After header (RFC 9110, 10.2.3): seconds or a date. Pure.
 *
 * @param now ms since the epoch.
 * @returns ms from now; undefined where there is no header that can be read.
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  // Date.parse takes much for a date that is none.
  const at = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}
