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
  /** Handlers should only enqueue keys; what one throws is logged. */
  onChange(handler: (change: Change<T>) => void): void;
}

export interface InformerOptions extends Omit<Selection, 'signal'> {
  readonly log: Logger;
}

const BACKOFF: Backoff = { firstMs: 250, longestMs: 30_000 };

/** @returns an informer that holds nothing until it is started. */
export function createInformer<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  { log, ...selection }: InformerOptions,
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
    const { items, resourceVersion } = await client.list(kind, { ...selection, signal });
    const present = new Set(items.map(keyOf));
    for (const [key, object] of [...objects]) if (!present.has(key)) drop(object);
    for (const item of items) put(item);
    firstList.resolve();
    return resourceVersion;
  }

  /** @returns the version to go on from when the server ends the watch. */
  async function follow(from: string, signal: AbortSignal, onProgress: () => void): Promise<string> {
    let version = from;
    for await (const event of client.watch(kind, { ...selection, resourceVersion: version, signal })) {
      onProgress();
      if (event.type === 'BOOKMARK') {
        version = event.resourceVersion;
        continue;
      }
      if (event.type === 'DELETED') drop(event.object);
      else put(event.object);
      version = event.object.metadata.resourceVersion ?? version;
    }
    return version;
  }

  async function run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      try {
        version ??= await relist(signal);
        version = await follow(version, signal, () => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        version = undefined;
        failures += 1;
        if (isGone(error) && failures === 1) continue;
        log.warn({ kind: kind.kind, failures, err: error }, 'watch failed; listing again');
        await delay(backoffMs(BACKOFF, failures, Math.random()), undefined, { signal }).catch(
          () => undefined,
        );
      }
    }
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
    onChange: (handler) => void handlers.push(handler),
  };
}

function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
