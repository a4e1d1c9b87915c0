import type { Logger } from 'pino';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createInformer, type Informer } from '../../cluster/informer.ts';

/** Notifies waiters that something changed. */
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

/** Informers that end together; every change of an object is a change to wait for. */
export interface Watches {
  readonly changes: Changes;
  /** Starts an informer; it is empty until `synced` resolves. */
  open<T extends KubernetesObject>(kind: Kind<T>): Informer<T>;
  /** Resolves once every informer has listed its objects. */
  synced(): Promise<void>;
  /** Ends the informers. */
  close(): Promise<void>;
}

/** @param signal ends the informers too. @returns watches without an informer. */
export function createWatches(client: ApiClient, log: Logger, signal: AbortSignal): Watches {
  const stop = new AbortController();
  const watching = AbortSignal.any([signal, stop.signal]);
  const changes = createChanges();
  const started: Promise<void>[] = [];
  const synced: Promise<void>[] = [];
  return {
    changes,
    open(kind) {
      const informer = createInformer(client, kind, { log });
      informer.onChange(() => changes.notify());
      started.push(informer.start(watching));
      synced.push(informer.synced());
      return informer;
    },
    synced: async () => void (await Promise.all(synced)),
    async close() {
      stop.abort();
      await Promise.all(started);
    },
  };
}

/** What a check of the cluster found: what was waited for, or the progress, as text and as a part of the whole. */
export type Look<T> = { readonly met: T } | { readonly seen: string; readonly part?: number };

export interface Wait<T> {
  /** In words, for the error: "every node of pool worker runs its image". */
  readonly what: string;
  readonly changes: Changes;
  readonly look: () => Look<T>;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Called with the progress, whenever it differs from the last. */
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
 * Checks now and after each change until what is waited for is met.
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
