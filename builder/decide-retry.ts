import type { BuildFailureReason } from '../api/machine-os-build.ts';
import type { BuildFailure } from './build-failure.ts';

/** How often a build is attempted while its failures are temporary, and the delays in between. */
interface RetryPolicy {
  /** Absent: until it succeeds or is no longer needed, because an unavailable service recovers without an admin. */
  readonly attempts?: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

/**
 * Five attempts in the first half minute, which outlasts a registry's restart; then ever fewer, down to one in four
 * minutes, at which the alert ShaleRegistryErrors still counts them as many.
 */
const AWAY: RetryPolicy = { firstDelayMs: 1_000, longestDelayMs: 240_000 };

/** A Secret that an admin fixes is used within a minute. Until then an attempt costs only a few requests. */
const SECRET: RetryPolicy = { firstDelayMs: 1_000, longestDelayMs: 60_000 };

/**
 * A container engine that can't be reached is a machine or a pod that is starting, being rescheduled or pulling its
 * image. A full disk is emptied by image garbage collection, or by the end of another build. Each attempt costs a pod
 * and the base image, too.
 */
const ENGINE_AWAY: RetryPolicy = { firstDelayMs: 15_000, longestDelayMs: 300_000 };

/**
 * Seven attempts over about 13 minutes: an engine that responds with an internal error may be restarted; otherwise the
 * error is permanent.
 */
const ENGINE: RetryPolicy = { ...ENGINE_AWAY, attempts: 7 };

/** Five attempts within half a minute: content that does not match its digest, and unexpected errors. */
const OTHERS: RetryPolicy = { attempts: 5, firstDelayMs: 1_000, longestDelayMs: 15_000 };

/** The operator publishes a key as soon as it sees that a build waits for that. An attempt costs few requests. */
const UNPUBLISHED: RetryPolicy = { firstDelayMs: 1_000, longestDelayMs: 8_000 };

const POLICIES: Readonly<Partial<Record<BuildFailureReason, RetryPolicy>>> = {
  RegistryUnavailable: AWAY,
  APIServerUnavailable: AWAY,
  SecretUnusable: SECRET,
  SecretNotAllowed: SECRET,
  SigningKeyUnpublished: UNPUBLISHED,
  EngineUnavailable: ENGINE_AWAY,
  EngineDiskFull: ENGINE_AWAY,
  EngineFailed: ENGINE,
};

export type RetryDecision =
  /** `left`: how many attempts are left, this one included; absent: there is no limit. */
  | { readonly kind: 'retry'; readonly inMs: number; readonly left?: number | undefined }
  | { readonly kind: 'giveUp' };

/**
 * @param failures how many attempts in a row have failed for this reason, at least 1.
 * @param failure why; temporary if another attempt can succeed with the same inputs. The delay that a server asked for
 *   counts up to the longest of the policy.
 */
export function decideRetry(
  failures: number,
  { reason, temporary, retryAfterMs = 0 }: Pick<BuildFailure, 'reason' | 'temporary' | 'retryAfterMs'>,
): RetryDecision {
  const { attempts, firstDelayMs, longestDelayMs } = POLICIES[reason] ?? OTHERS;
  const left = attempts === undefined ? undefined : attempts - failures;
  if (!temporary || (left !== undefined && left <= 0)) return { kind: 'giveUp' };
  const backoff = Math.min(firstDelayMs * 2 ** (failures - 1), longestDelayMs);
  const inMs = Math.max(backoff, Math.min(retryAfterMs, longestDelayMs));
  return { kind: 'retry', inMs, left };
}
