/** Timers, so that a test can move the time itself. */
export interface Timers {
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

const systemTimers: Timers = {
  set: (callback, ms) => setTimeout(callback, ms),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/**
 * client-go's default for a controller's items, with a lower maximum, because admins wait for the result of a retry.
 */
const DEFAULT_BACKOFF: Backoff = { firstMs: 50, longestMs: 60_000 };

/**
 * Keys to work on (client-go's workqueue): a key that is added while it waits is there once; one that is added while it
 * is worked on comes again afterwards, and never to two workers at a time.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds the key later; an earlier time that was asked for stands. */
  addAfter(key: string, ms: number): void;
  /**
   * Adds the key after its back-off, which grows until `forget`.
   *
   * @param atLeastMs ms that the failure requires at least.
   */
  addRateLimited(key: string, atLeastMs?: number): void;
  forget(key: string): void;
  /** @returns the next key; undefined once the queue is shut down. */
  take(): Promise<string | undefined>;
  /**
   * Marks the work on a key that `take` returned as done.
   *
   * @param restMs ms for which the key is not returned again, whatever adds it; absent: none.
   */
  finish(key: string, restMs?: number): void;
  /** Keys that wait. */
  length(): number;
  /** Wakes every taker and drops what waits. */
  shutDown(): void;
}

interface WorkQueueOptions {
  readonly backoff?: Backoff;
  readonly timers?: Timers;
  readonly random?: () => number;
  /** ms since any fixed moment. */
  readonly now?: () => number;
}

/** @returns an empty queue. */
export function createWorkQueue(options: WorkQueueOptions = {}): WorkQueue {
  return new DelayingQueue(options);
}

class DelayingQueue implements WorkQueue {
  readonly #backoff: Backoff;
  readonly #timers: Timers;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #waiting = new Set<string>();
  readonly #working = new Set<string>();
  /** Added while they are worked on. */
  readonly #again = new Set<string>();
  readonly #later = new Map<string, { readonly timer: unknown; readonly at: number }>();
  readonly #resting = new Set<unknown>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #shut = false;

  constructor(options: WorkQueueOptions) {
    this.#backoff = options.backoff ?? DEFAULT_BACKOFF;
    this.#timers = options.timers ?? systemTimers;
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? (() => performance.now());
  }

  length(): number {
    return this.#waiting.size;
  }

  add(key: string): void {
    if (this.#shut) return;
    if (this.#working.has(key)) {
      this.#again.add(key);
      return;
    }
    const taker = this.#takers.shift();
    if (taker === undefined) {
      this.#waiting.add(key);
      return;
    }
    this.#working.add(key);
    taker(key);
  }

  addAfter(key: string, ms: number): void {
    if (this.#shut) return;
    const at = this.#now() + ms;
    const planned = this.#later.get(key);
    if (planned !== undefined) {
      if (planned.at <= at) return;
      this.#timers.clear(planned.timer);
    }
    const timer = this.#timers.set(() => {
      this.#later.delete(key);
      this.add(key);
    }, ms);
    this.#later.set(key, { timer, at });
  }

  addRateLimited(key: string, atLeastMs = 0): void {
    const count = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, count);
    this.addAfter(key, Math.max(backoffMs(this.#backoff, count, this.#random()), atLeastMs));
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  take(): Promise<string | undefined> {
    if (this.#shut) return Promise.resolve(undefined);
    const [key] = this.#waiting;
    if (key === undefined) return new Promise((resolve) => this.#takers.push(resolve));
    this.#waiting.delete(key);
    this.#working.add(key);
    return Promise.resolve(key);
  }

  finish(key: string, restMs = 0): void {
    if (restMs === 0 || this.#shut) {
      this.#rejoin(key);
      return;
    }
    const timer = this.#timers.set(() => {
      this.#resting.delete(timer);
      this.#rejoin(key);
    }, restMs);
    this.#resting.add(timer);
  }

  shutDown(): void {
    this.#shut = true;
    this.#waiting.clear();
    this.#again.clear();
    for (const { timer } of this.#later.values()) this.#timers.clear(timer);
    for (const timer of this.#resting) this.#timers.clear(timer);
    this.#later.clear();
    this.#resting.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #rejoin(key: string): void {
    this.#working.delete(key);
    if (this.#again.delete(key)) this.add(key);
  }
}

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
