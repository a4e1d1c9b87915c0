import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient, Selection } from './api-client.ts';
import { isGone, WatchEventTooLarge } from './api-client.ts';
import { type Backoff, backoffMs } from './work-queue.ts';

/** One change of what an informer holds. */
export interface ObjectChange<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  /** What was held before; absent when it is added. */
  readonly old?: T;
}

/** A copy of a kind's objects, kept true by one watch (client-go's shared informer). */
export interface Informer<T extends KubernetesObject> {
  /** Lists and watches until the signal; trouble on the way is logged and tried again. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves once the first list is in. */
  synced(): Promise<void>;
  get(name: string, namespace?: string): T | undefined;
  list(): readonly T[];
  /** @returns how many objects there are. */
  size(): number;
  /** Handlers should only enqueue keys; what one throws is logged. */
  onChange(handler: (change: ObjectChange<T>) => void): void;
}

interface InformerOptions<T> extends Omit<Selection, 'signal'> {
  readonly log: Logger;
  /** @returns the part of an object that is held and reported; absent: all but managedFields. */
  readonly keep?: (object: T) => T;
}

const BACKOFF: Backoff = { firstMs: 250, longestMs: 30_000 };
/**
 * Seconds that a watch is asked to last, as client-go's reflector does: spread, so that not all of them end together.
 */
const WATCH_SECONDS = { shortest: 300, longest: 600 };
/** Further failures in a row, without an event in between, put what is held in doubt. */
const RESUMED_FAILURES = 1;

/** @returns an informer that holds nothing until it is started. */
export function createInformer<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  options: InformerOptions<T>,
): Informer<T> {
  return new WatchingInformer(client, kind, options);
}

class WatchingInformer<T extends KubernetesObject> implements Informer<T> {
  readonly #client: ApiClient;
  readonly #kind: Kind<T>;
  readonly #log: Logger;
  readonly #keep: (object: T) => T;
  readonly #selection: Omit<Selection, 'signal'>;
  readonly #objects = new Map<string, T>();
  readonly #handlers: ((change: ObjectChange<T>) => void)[] = [];
  readonly #firstList = Promise.withResolvers<void>();
  #started = false;

  constructor(
    client: ApiClient,
    kind: Kind<T>,
    { log, keep = withoutManagedFields, ...selection }: InformerOptions<T>,
  ) {
    this.#client = client;
    this.#kind = kind;
    this.#log = log;
    this.#keep = keep;
    this.#selection = selection;
  }

  async start(signal: AbortSignal): Promise<void> {
    if (this.#started) throw new Error(`informer of ${this.#kind.kind}: already started`);
    this.#started = true;
    await this.#run(signal);
    // A caller that still waits for the first list would wait for ever.
    this.#firstList.resolve();
  }

  synced(): Promise<void> {
    return this.#firstList.promise;
  }

  get(name: string, namespace = ''): T | undefined {
    return this.#objects.get(keyOf({ name, namespace }));
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  size(): number {
    return this.#objects.size;
  }

  onChange(handler: (change: ObjectChange<T>) => void): void {
    this.#handlers.push(handler);
  }

  async #run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      try {
        version ??= await this.#relist(signal);
        await this.#follow(version, signal, (reached) => {
          version = reached;
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (losesTrack(error, failures)) version = undefined;
        await this.#pause(error, failures, version, signal);
      }
    }
  }

  /** @returns the version of the list, from which a watch can go on. */
  async #relist(signal: AbortSignal): Promise<string> {
    const { items, resourceVersion } = await this.#client.list(this.#kind, {
      ...this.#selection,
      keep: this.#keep,
      signal,
    });
    const present = new Set(items.map(({ metadata }) => keyOf(metadata)));
    for (const [key, object] of [...this.#objects]) if (!present.has(key)) this.#drop(object);
    for (const item of items) this.#put(item);
    this.#firstList.resolve();
    return resourceVersion;
  }

  /**
   * Ends when the server ends the watch. `reach` is called with the version of each event: another watch can start
   * there.
   */
  async #follow(from: string, signal: AbortSignal, reach: (version: string) => void): Promise<void> {
    const { shortest, longest } = WATCH_SECONDS;
    const timeoutSeconds = Math.round(shortest + Math.random() * (longest - shortest));
    const options = { ...this.#selection, resourceVersion: from, timeoutSeconds, signal };
    for await (const event of this.#client.watch(this.#kind, options)) {
      if (event.type === 'BOOKMARK') {
        reach(event.resourceVersion);
        continue;
      }
      if (event.type === 'DELETED') this.#drop(event.object);
      else this.#put(this.#keep(event.object));
      reach(event.object.metadata.resourceVersion ?? from);
    }
  }

  async #pause(error: unknown, failures: number, version: string | undefined, signal: AbortSignal) {
    if (isGone(error) && failures === 1) return;
    const next = version === undefined ? 'listing' : 'watching';
    this.#log.warn({ kind: this.#kind.kind, failures, err: error }, `watch failed; ${next} again`);
    await delay(backoffMs(BACKOFF, failures, Math.random()), undefined, { signal }).catch(() => undefined);
  }

  #put(object: T): void {
    const key = keyOf(object.metadata);
    const old = this.#objects.get(key);
    if (
      old?.metadata.resourceVersion === object.metadata.resourceVersion &&
      old?.metadata.uid === object.metadata.uid
    ) {
      return;
    }
    this.#objects.set(key, object);
    this.#notify(old === undefined ? { type: 'ADDED', object } : { type: 'MODIFIED', object, old });
  }

  #drop(object: T): void {
    const key = keyOf(object.metadata);
    const old = this.#objects.get(key);
    if (!this.#objects.delete(key) || old === undefined) return;
    this.#notify({ type: 'DELETED', object, old });
  }

  #notify(change: ObjectChange<T>): void {
    for (const handler of this.#handlers) {
      try {
        handler(change);
      } catch (error) {
        this.#log.error({ kind: this.#kind.kind, err: error }, 'change handler failed');
      }
    }
  }
}

/**
 * After a broken connection the watch resumes from the last version, and misses nothing. An event that is too large
 * would only be received again.
 */
function losesTrack(error: unknown, failures: number): boolean {
  return isGone(error) || error instanceof WatchEventTooLarge || failures > RESUMED_FAILURES;
}

/**
 * Readers have no use for managedFields, which are a third of an object or more (API concepts, "Server-Side Apply"). A
 * write without it does not change it.
 */
export function withoutManagedFields<T extends KubernetesObject>(object: T): T {
  const { managedFields, ...metadata } = object.metadata as T['metadata'] & {
    readonly managedFields?: unknown;
  };
  return managedFields === undefined ? object : { ...object, metadata };
}

/**
 * @returns what an object is found by among those of its kind: no name contains a slash. Of objects without a namespace
 *   it is the name itself, whose hash need not be computed for each look at each node.
 */
export function keyOf({
  name,
  namespace = '',
}: {
  readonly name: string;
  readonly namespace?: string | undefined;
}): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}
