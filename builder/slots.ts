/** Places of which only so many are held at once. */
export interface Slots {
  /**
   * Does work while holding a place, as soon as one is free; whoever came first is first.
   *
   * @throws the signal's reason when it is aborted before; what the work throws.
   */
  hold<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** @param count how many places there are. */
export function createSlots(count: number): Slots {
  const waiting: (() => void)[] = [];
  let free = count;

  async function take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Whoever gives up must leave the line, or the place would be handed to nobody.
    const leave = () => {
      const at = waiting.indexOf(resolve);
      if (at !== -1) waiting.splice(at, 1);
      reject(signal.reason as Error);
    };
    waiting.push(resolve);
    signal.addEventListener('abort', leave, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', leave));
  }

  function release(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  return {
    async hold(signal, work) {
      await take(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
