import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type FailingSteps, isOnlyConflict, type KeyedStep, StepsFailed } from './failing-steps.ts';
import { failureOf } from './failure.ts';
import type { WorkQueue } from './work-queue.ts';

/** How a pass over a key ended. A thrown error is a failure, and the key is added again after its back-off. */
export type Result = ({ readonly kind: 'done' } | { readonly kind: 'requeue'; readonly afterMs: number }) & {
  /** ms until the next pass over the key at the earliest, so that what happens until then is one pass; absent: none. */
  readonly restMs?: number;
};

export const done: Result = { kind: 'done' };

/** @returns the result of a pass that has to be made again after so many ms, whatever happens until then. */
export function requeueAfter(afterMs: number): Result {
  return { kind: 'requeue', afterMs };
}

export interface ControllerOptions {
  readonly name: string;
  readonly queue: WorkQueue;
  /** Keys that are worked on at the same time. */
  readonly workers: number;
  /** Level-based: reads the current state and changes it to the desired one, whatever the key was added for. */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Result>;
  /**
   * Names all keys that there are. They are added from time to time (client-go's resync), so that a missed event has no
   * lasting effect.
   */
  readonly allKeys?: () => Iterable<string>;
  /** ms until all keys are added again; with jitter, so that the controllers of a cluster don't do it at once. */
  readonly resyncMs?: () => number;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Called after every pass. */
  readonly onPass?: (pass: Pass) => void;
  /** Records passes that fail until they succeed, so that they are reported; absent: they are only logged. */
  readonly failing?: KeyedStep & {
    readonly steps: FailingSteps;
    /** @returns whether the controller reports an error itself; absent: none. */
    readonly isReported?: (error: unknown) => boolean;
  };
  /** @returns what belongs in the log of a pass that failed, beside its key. */
  readonly fields?: (key: string) => Readonly<Record<string, unknown>>;
}

/** How one pass over one key went. */
export interface Pass {
  /** ms */
  readonly took: number;
  /** `conflict`: somebody else wrote in between. */
  readonly outcome: 'done' | 'conflict' | 'failed';
}

/**
 * Works on a queue's keys until the signal (controller-runtime's Controller).
 *
 * @returns when the signal is aborted and every worker has ended.
 */
export async function runController(options: ControllerOptions): Promise<void> {
  const { queue, signal } = options;
  const stop = () => queue.shutDown();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const workers = Array.from({ length: options.workers }, () => work(options));
  await Promise.all([...workers, resync(options)]);
  signal.removeEventListener('abort', stop);
}

/** As MCO's informers: minResyncPeriod (docs/decisions/0027-reconciling.md). */
const RESYNC_MS = 20 * 60_000;

/** @returns 20 to 40 minutes. @param random 0 to 1. */
export function resyncAtRandom(random = Math.random()): number {
  return RESYNC_MS * (1 + random);
}

async function resync({
  allKeys,
  resyncMs = () => resyncAtRandom(),
  queue,
  signal,
}: ControllerOptions): Promise<void> {
  if (allKeys === undefined) return;
  while (!signal.aborted) {
    await delay(resyncMs(), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    for (const key of allKeys()) queue.add(key);
  }
}

async function work(options: ControllerOptions): Promise<void> {
  for (;;) {
    const key = await options.queue.take();
    if (key === undefined) return;
    options.queue.finish(key, await pass(key, options));
  }
}

/** @returns for how many ms the key rests. */
async function pass(key: string, options: ControllerOptions): Promise<number | undefined> {
  const { name, queue, reconcile, log, signal } = options;
  const started = performance.now();
  const report = (outcome: Pass['outcome']) =>
    options.onPass?.({ took: performance.now() - started, outcome });
  try {
    const result = await reconcile(key, signal);
    report('done');
    takeDown(key, options);
    log.debug({ controller: name, key, ...options.fields?.(key) }, 'reconciled');
    queue.forget(key);
    if (result.kind === 'requeue') queue.addAfter(key, result.afterMs);
    return result.restMs;
  } catch (error) {
    if (signal.aborted) return undefined;
    const isConflict = isOnlyConflict(error);
    report(isConflict ? 'conflict' : 'failed');
    const about = { controller: name, key, ...options.fields?.(key), err: error };
    // Somebody else wrote in between, as happens every day: the next pass sees it.
    if (isConflict) log.debug(about, 'reconcile met a conflict');
    else log.warn(about, 'reconcile failed');
    if (error instanceof StepsFailed) {
      // Each step waits for its own back-off, and the others must not wait with it.
      takeDown(key, options);
      queue.forget(key);
      queue.addAfter(key, error.retryAfterMs);
      return undefined;
    }
    takeDown(key, options, { error });
    queue.addRateLimited(key, failureOf(error).retryAfterMs);
    return undefined;
  }
}

/** @param failed how the pass failed; absent: it was made. */
function takeDown(key: string, { failing }: ControllerOptions, failed?: { readonly error: unknown }): void {
  const object = failing?.objectOf(key);
  if (failing === undefined || object === undefined) return;
  if (failed === undefined || failing.isReported?.(failed.error) === true)
    failing.steps.over(object, failing.doing);
  else failing.steps.failed(object, failing.doing, failed.error);
}
