/** Tells those who wait that something changed and is worth another look. */
export interface Changes {
  notify(): void;
  /** @returns a function that ends the subscription. */
  subscribe(handler: () => void): () => void;
}

/** @returns changes that nobody waits for yet. */
export function createChanges(): Changes {
  const handlers = new Set<() => void>();
  return {
    notify() {
      for (const handler of [...handlers]) handler();
    },
    subscribe(handler) {
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
  };
}

/** What a look at the cluster found: what was waited for, or how far it is, in words and as a part of the whole. */
export type Look<T> = { readonly met: T } | { readonly seen: string; readonly part?: number };

export interface Wait<T> {
  /** In words, for the error: "every node of pool worker runs its image". */
  readonly what: string;
  readonly changes: Changes;
  readonly look: () => Look<T>;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Told what a look saw, whenever it differs from the last. */
  readonly onProgress?: ((seen: string, part: number | undefined) => void) | undefined;
}

/** What was waited for didn't come to be in time. */
export class WaitTimeout extends Error {
  override readonly name = 'WaitTimeout';
  readonly seen: string;

  constructor(what: string, deadlineMs: number, seen: string) {
    super(`timed out after ${deadlineMs / 1000} s waiting until ${what}; last state: ${seen}`);
    this.seen = seen;
  }
}

/**
 * Looks now and after each change until what is waited for is there.
 *
 * @returns what the look met. @throws WaitTimeout at the deadline; the signal's reason; what the look throws, at once.
 */
export async function waitUntil<T>(wait: Wait<T>): Promise<T> {
  wait.signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let seen = '';
  const look = () => {
    try {
      const result = wait.look();
      if ('met' in result) {
        resolve(result.met);
        return;
      }
      if (result.seen !== seen) wait.onProgress?.(result.seen, result.part);
      seen = result.seen;
    } catch (error) {
      reject(error);
    }
  };
  const stop = () => reject(wait.signal.reason);
  const timer = setTimeout(() => reject(new WaitTimeout(wait.what, wait.deadlineMs, seen)), wait.deadlineMs);
  const unsubscribe = wait.changes.subscribe(look);
  wait.signal.addEventListener('abort', stop);
  try {
    look();
    return await promise;
  } finally {
    clearTimeout(timer);
    unsubscribe();
    wait.signal.removeEventListener('abort', stop);
  }
}
