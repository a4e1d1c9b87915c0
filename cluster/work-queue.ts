import { type Backoff, backoffMs } from './backoff.ts';

/** Timers, so that a test can move the time itself. */
export interface Timers {
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

const systemTimers: Timers = {
  set: (callback, ms) => setTimeout(callback, ms),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** client-go's default for a controller's items, with a lower limit: an admin waits for what a retry brings. */
const DEFAULT_BACKOFF: Backoff = { firstMs: 50, longestMs: 60_000 };

/**
 * Keys to work on (client-go's workqueue): a key that is added while it waits is there once; one that is added while it
 * is worked on comes again afterwards, and never to two workers at a time.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds the key later; an earlier time that was asked for stands. */
  addAfter(key: string, ms: number): void;
  /** Adds the key after its back-off, which grows until `forget`. */
  addRateLimited(key: string): void;
  forget(key: string): void;
  /** @returns the next key; undefined once the queue is shut down. */
  take(): Promise<string | undefined>;
  /**
   * Says that the work on a key that `take` gave is over.
   *
   * @param restMs for so long the key does not come again, whoever adds it; absent: not at all.
   */
  finish(key: string, restMs?: number): void;
  /** Keys that wait. */
  length(): number;
  /** Wakes every taker and drops what waits. */
  shutDown(): void;
}

export interface WorkQueueOptions {
  readonly backoff?: Backoff;
  readonly timers?: Timers;
  readonly random?: () => number;
  /** ms since any fixed moment. */
  readonly now?: () => number;
}

/** @returns an empty queue. */
export function createWorkQueue(options: WorkQueueOptions = {}): WorkQueue {
  const {
    backoff = DEFAULT_BACKOFF,
    timers = systemTimers,
    random = Math.random,
    now = () => performance.now(),
  } = options;
  const waiting = new Set<string>();
  const working = new Set<string>();
  const again = new Set<string>();
  const later = new Map<string, { readonly timer: unknown; readonly at: number }>();
  const resting = new Set<unknown>();
  const failures = new Map<string, number>();
  const takers: ((key: string | undefined) => void)[] = [];
  let shut = false;

  function add(key: string): void {
    if (shut) return;
    if (working.has(key)) {
      again.add(key);
      return;
    }
    const taker = takers.shift();
    if (taker === undefined) {
      waiting.add(key);
      return;
    }
    working.add(key);
    taker(key);
  }

  function addAfter(key: string, ms: number): void {
    if (shut) return;
    const at = now() + ms;
    const planned = later.get(key);
    if (planned !== undefined) {
      if (planned.at <= at) return;
      timers.clear(planned.timer);
    }
    const timer = timers.set(() => {
      later.delete(key);
      add(key);
    }, ms);
    later.set(key, { timer, at });
  }

  function rejoin(key: string): void {
    working.delete(key);
    if (again.delete(key)) add(key);
  }

  return {
    length: () => waiting.size,
    add,
    addAfter,
    addRateLimited(key) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      addAfter(key, backoffMs(backoff, count, random()));
    },
    forget: (key) => void failures.delete(key),
    take() {
      if (shut) return Promise.resolve(undefined);
      const [key] = waiting;
      if (key === undefined) return new Promise((resolve) => takers.push(resolve));
      waiting.delete(key);
      working.add(key);
      return Promise.resolve(key);
    },
    finish(key, restMs = 0) {
      if (restMs === 0 || shut) {
        rejoin(key);
        return;
      }
      const timer = timers.set(() => {
        resting.delete(timer);
        rejoin(key);
      }, restMs);
      resting.add(timer);
    },
    shutDown() {
      shut = true;
      waiting.clear();
      again.clear();
      for (const { timer } of later.values()) timers.clear(timer);
      for (const timer of resting) timers.clear(timer);
      later.clear();
      resting.clear();
      for (const taker of takers.splice(0)) taker(undefined);
    },
  };
}
