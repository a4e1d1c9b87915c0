import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient, Selection } from './api-client.ts';
import { isGone } from './api-error.ts';
import { type Backoff, backoffMs } from './backoff.ts';

/** One change of what an informer holds. */
export interface Change<T> {
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
  onChange(handler: (change: Change<T>) => void): void;
}

export interface InformerOptions<T> extends Omit<Selection, 'signal'> {
  readonly log: Logger;
  /** @returns what is held of an object and told of its changes; absent: all but managedFields. */
  readonly keep?: (object: T) => T;
}

const BACKOFF: Backoff = { firstMs: 250, longestMs: 30_000 };
/** Seconds that a watch is asked to last, as client-go's reflector does: spread, so that not all of them end together. */
const WATCH_SECONDS = { shortest: 300, longest: 600 };
/** Further failures in a row, without an event in between, put what is held in doubt. */
const RESUMED_FAILURES = 1;

/** @returns an informer that holds nothing until it is started. */
export function createInformer<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  { log, keep = withoutManagedFields, ...selection }: InformerOptions<T>,
): Informer<T> {
  const objects = new Map<string, T>();
  const handlers: ((change: Change<T>) => void)[] = [];
  const firstList = Promise.withResolvers<void>();
  let started = false;

  function tell(change: Change<T>): void {
    for (const handler of handlers) {
      try {
        handler(change);
      } catch (error) {
        log.error({ kind: kind.kind, err: error }, 'handler of a change failed');
      }
    }
  }

  function put(object: T): void {
    const key = keyOf(object);
    const old = objects.get(key);
    if (
      old?.metadata.resourceVersion === object.metadata.resourceVersion &&
      old?.metadata.uid === object.metadata.uid
    ) {
      return;
    }
    objects.set(key, object);
    tell(old === undefined ? { type: 'ADDED', object } : { type: 'MODIFIED', object, old });
  }

  function drop(object: T): void {
    const key = keyOf(object);
    const old = objects.get(key);
    if (!objects.delete(key) || old === undefined) return;
    tell({ type: 'DELETED', object, old });
  }

  async function relist(signal: AbortSignal): Promise<string> {
    const { items, resourceVersion } = await client.list(kind, { ...selection, keep, signal });
    const present = new Set(items.map(keyOf));
    for (const [key, object] of [...objects]) if (!present.has(key)) drop(object);
    for (const item of items) put(item);
    firstList.resolve();
    return resourceVersion;
  }

  /** Ends when the server ends the watch. `seen` is told how far it has come: from there another watch can go on. */
  async function follow(from: string, signal: AbortSignal, seen: (version: string) => void): Promise<void> {
    const { shortest, longest } = WATCH_SECONDS;
    const timeoutSeconds = Math.round(shortest + Math.random() * (longest - shortest));
    const options = { ...selection, resourceVersion: from, timeoutSeconds, signal };
    for await (const event of client.watch(kind, options)) {
      if (event.type === 'BOOKMARK') {
        seen(event.resourceVersion);
        continue;
      }
      if (event.type === 'DELETED') drop(event.object);
      else put(keep(event.object));
      seen(event.object.metadata.resourceVersion ?? from);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      try {
        version ??= await relist(signal);
        await follow(version, signal, (seen) => {
          version = seen;
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (losesTrack(error, failures)) version = undefined;
        await pause(error, failures, version, signal);
      }
    }
  }

  async function pause(error: unknown, failures: number, version: string | undefined, signal: AbortSignal) {
    if (isGone(error) && failures === 1) return;
    const next = version === undefined ? 'listing' : 'watching';
    log.warn({ kind: kind.kind, failures, err: error }, `watch failed; ${next} again`);
    await delay(backoffMs(BACKOFF, failures, Math.random()), undefined, { signal }).catch(() => undefined);
  }

  return {
    async start(signal) {
      if (started) throw new Error(`informer of ${kind.kind} was started before`);
      started = true;
      await run(signal);
      // Whoever still waits for the first list would wait for ever.
      firstList.resolve();
    },
    synced: () => firstList.promise,
    get: (name, namespace) => objects.get(`${namespace ?? ''}/${name}`),
    list: () => [...objects.values()],
    size: () => objects.size,
    onChange: (handler) => void handlers.push(handler),
  };
}

/** A connection that broke has lost nothing: what happened meanwhile can be watched from where it was. */
function losesTrack(error: unknown, failures: number): boolean {
  return isGone(error) || failures > RESUMED_FAILURES;
}

/**
 * Who wrote which field is of no use to a reader, and is a third of an object or more (API concepts, "Server-Side Apply").
 * A write without it leaves it as it is.
 */
export function withoutManagedFields<T extends KubernetesObject>(object: T): T {
  const { managedFields, ...metadata } = object.metadata as T['metadata'] & {
    readonly managedFields?: unknown;
  };
  return managedFields === undefined ? object : { ...object, metadata };
}

function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
