/** How often a build is tried when what failed may pass by itself, and how long it waits in between. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

/**
 * Five attempts over about half a minute outlast a registry's restart; after that an admin should know. The rebuild
 * annotation, or any changed input, starts anew.
 */
export const buildRetryPolicy: RetryPolicy = { attempts: 5, firstDelayMs: 1_000, longestDelayMs: 15_000 };

export type RetryDecision = { readonly kind: 'retry'; readonly inMs: number } | { readonly kind: 'giveUp' };

/**
 * @param attempt the attempt that just failed, counted from 1.
 * @param temporary whether the failure may pass by itself.
 * @param retryAfterMs what the server asked for, if it did.
 */
export function decideRetry(
  policy: RetryPolicy,
  attempt: number,
  temporary: boolean,
  retryAfterMs?: number,
): RetryDecision {
  if (!temporary || attempt >= policy.attempts) return { kind: 'giveUp' };
  const backoff = Math.min(policy.firstDelayMs * 2 ** (attempt - 1), policy.longestDelayMs);
  return { kind: 'retry', inMs: Math.max(backoff, Math.min(retryAfterMs ?? 0, policy.longestDelayMs)) };
}
