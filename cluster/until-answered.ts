import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { errorMessage } from '../api/error-message.ts';
import { isTemporary } from './api-client.ts';
import { type Backoff, backoffMs } from './work-queue.ts';

const BACKOFF: Backoff = { firstMs: 500, longestMs: 15_000 };

/**
 * Asks the API server until it answers: a process that starts while it is unavailable waits, rather than exit and be
 * restarted with a growing back-off.
 *
 * @param ask may be called several times.
 * @returns what was answered.
 * @throws what `ask` throws, unless the same request may succeed later; the signal's reason.
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  {
    log,
    signal,
    backoff = BACKOFF,
  }: { readonly log: Logger; readonly signal: AbortSignal; readonly backoff?: Backoff },
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTemporary(error)) throw error;
      const why = errorMessage(error);
      log.warn({ failures, why }, 'the API server does not answer; retrying');
      await delay(backoffMs(backoff, failures, Math.random()), undefined, { signal });
    }
  }
}
