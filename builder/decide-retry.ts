import type { BuildFailureReason } from '../api/machine-os-build.ts';
import type { BuildFailure } from './build-failure.ts';

/** How often a build is attempted while its failures are temporary, and the delays in between. */
interface RetryPolicy {
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

/**
 * Five attempts over about half a minute outlast a registry's restart; after that the build fails for good. The rebuild
 * annotation, or any changed input, starts another build.
 */
const REGISTRY: RetryPolicy = { attempts: 5, firstDelayMs: 1_000, longestDelayMs: 15_000 };

/**
 * Seven attempts over about 13 minutes: a container engine that can't be reached is a machine or a pod that is starting,
 * being rescheduled or pulling its image. A full disk is emptied by image garbage collection, or by the end of another
 * build; an engine that answers with an error of its own is restarted. Each attempt costs a pod and the base image, too.
 */
const ENGINE: RetryPolicy = { attempts: 7, firstDelayMs: 15_000, longestDelayMs: 300_000 };

/** Every reason that is not here is the registry's, or the API server's. */
const POLICIES: Readonly<Partial<Record<BuildFailureReason, RetryPolicy>>> = {
  EngineUnavailable: ENGINE,
  EngineDiskFull: ENGINE,
  EngineFailed: ENGINE,
};

export type RetryDecision =
  | { readonly kind: 'retry'; readonly inMs: number; readonly of: number }
  | { readonly kind: 'giveUp' };

/**
 * @param attempt the attempt that just failed, counted from 1.
 * @param failure why; temporary if another attempt can succeed with the same inputs. The delay that a server asked for counts
 *   up to the longest of the policy.
 * @returns when to try again, and how many attempts there are at most.
 */
export function decideRetry(
  attempt: number,
  { reason, temporary, retryAfterMs = 0 }: Pick<BuildFailure, 'reason' | 'temporary' | 'retryAfterMs'>,
): RetryDecision {
  const policy = POLICIES[reason] ?? REGISTRY;
  if (!temporary || attempt >= policy.attempts) return { kind: 'giveUp' };
  const backoff = Math.min(policy.firstDelayMs * 2 ** (attempt - 1), policy.longestDelayMs);
  const inMs = Math.max(backoff, Math.min(retryAfterMs, policy.longestDelayMs));
  return { kind: 'retry', inMs, of: policy.attempts };
}
