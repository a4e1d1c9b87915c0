/** A counting semaphore: so many slots, given out in the order in which they were asked for. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** @param count how many slots there are. */
  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Does work while holding a slot, as soon as one is free.
   *
   * @throws the signal's reason when it is aborted before that; what the work throws.
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // An aborted waiter has to leave the queue, or the slot would be given to nobody.
    const leave = () => {
      const at = this.#waiting.indexOf(resolve);
      if (at !== -1) this.#waiting.splice(at, 1);
      reject(signal.reason as Error);
    };
    this.#waiting.push(resolve);
    signal.addEventListener('abort', leave, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', leave));
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
