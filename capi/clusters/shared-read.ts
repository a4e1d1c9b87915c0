/** What was read lately. */
interface Last<T> {
  /** ms, by the clock. */
  readonly startedAt: number;
  readonly value: Promise<T>;
}

/** ms for which calls share a read. */
const SHARED_MS = 2_000;

/**
 * One read for callers that ask at about the same time: Cluster API asks for each machine that it updates, and each
 * answer is from all objects of one cluster. A read that fails is nobody's but theirs who wait for it.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  readonly #now: () => number;
  #last: Last<T> | undefined;

  /** @param read has its own deadline, because no caller's may end what others wait for. @param now in ms. */
  constructor(read: () => Promise<T>, now: () => number) {
    this.#read = read;
    this.#now = now;
  }

  /** @returns what a read returns that began no longer than 2 s ago. @throws the signal's reason; what it throws. */
  async get(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const { value } = this.#recent() ?? this.#begin();
    const ended = Promise.withResolvers<never>();
    const end = () => ended.reject(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    try {
      return await Promise.race([value, ended.promise]);
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Something was written: what was read before says nothing any more, also where that read has not ended. */
  forget(): void {
    this.#last = undefined;
  }

  #recent(): Last<T> | undefined {
    const last = this.#last;
    return last !== undefined && this.#now() - last.startedAt < SHARED_MS ? last : undefined;
  }

  #begin(): Last<T> {
    const begun: Last<T> = { startedAt: this.#now(), value: this.#read() };
    this.#last = begun;
    begun.value.catch(() => {
      if (this.#last === begun) this.#last = undefined;
    });
    return begun;
  }
}
