/** Exponential back-off: the delay doubles with each failure up to a limit. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * @param failures how often it failed in a row, at least 1.
 * @param random between 0 and 1: spreads clients that failed together (up to a fifth more).
 * @returns ms to wait before the next try.
 */
export function backoffMs({ firstMs, longestMs }: Backoff, failures: number, random: number): number {
  const base = Math.min(firstMs * 2 ** Math.min(failures - 1, 30), longestMs);
  return Math.round(base * (1 + random / 5));
}
