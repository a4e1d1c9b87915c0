import type { StoredObject } from '../stored-object.ts';

/**
 * One write. `previous` is absent for a creation; for a deletion `object` is the last state with the deletion's
 * revision.
 */
export type Change =
  | {
      readonly type: 'created';
      readonly revision: number;
      readonly bucket: string;
      readonly object: StoredObject;
    }
  | {
      readonly type: 'updated' | 'deleted';
      readonly revision: number;
      readonly bucket: string;
      readonly object: StoredObject;
      readonly previous: StoredObject;
    };

/**
 * Everything the API server knows, in memory: buckets (one for each resource) of objects, and a log of the last changes
 * from which watches go on and earlier lists are read again. All writes are synchronous, so each is atomic.
 */
export interface Store {
  readonly revision: number;
  /** Changes up to here are forgotten; a watch from an earlier revision gets 410. */
  readonly compacted: number;
  get(bucket: string, key: string): StoredObject | undefined;
  /** @returns a bucket's objects in order of their keys. */
  list(bucket: string): readonly StoredObject[];
  /** @returns a bucket as it was at a revision; undefined when that is forgotten. */
  listAt(bucket: string, revision: number): readonly StoredObject[] | undefined;
  /** @returns the object with its new resourceVersion. */
  put(bucket: string, object: StoredObject): StoredObject;
  remove(bucket: string, key: string): StoredObject | undefined;
  /** @returns changes after a revision, oldest first; undefined when some are forgotten. */
  changesAfter(revision: number): readonly Change[] | undefined;
  /** Calls back after every write, in order of revision. @returns a function that ends it. */
  subscribe(listener: (change: Change) => void): () => void;
}

/**
 * A new store doesn't begin at 0: resourceVersion 0 means "any" to clients, and one that kept a version from an earlier
 * server must be told that it is too old.
 */
const FIRST_REVISION = 1000;
const DEFAULT_HISTORY = 20_000;

/** @returns the key of an object in its bucket; sorts as etcd's keys do: by namespace, then name. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** @param history how many changes are kept for watches. */
export function createStore(history = DEFAULT_HISTORY): Store {
  const buckets = new Map<string, Map<string, StoredObject>>();
  /** Lists that were asked for since their bucket was written last. */
  const lists = new Map<string, readonly StoredObject[]>();
  const listeners = new Set<(change: Change) => void>();
  let log: Change[] = [];
  let revision = FIRST_REVISION;
  let compacted = FIRST_REVISION;

  function record(change: Change): void {
    lists.delete(change.bucket);
    log.push(change);
    // Cut in halves: cutting one at a time would copy the log for every write.
    if (log.length > history) {
      const cut = log.length - Math.ceil(history / 2);
      compacted = log[cut - 1]?.revision ?? compacted;
      log = log.slice(cut);
    }
    for (const listener of listeners) listener(change);
  }

  function withRevision(object: StoredObject): StoredObject {
    revision += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
  }

  return {
    get revision() {
      return revision;
    },
    get compacted() {
      return compacted;
    },
    get: (bucket, key) => buckets.get(bucket)?.get(key),
    list(bucket) {
      const list = lists.get(bucket) ?? sorted(buckets.get(bucket) ?? new Map());
      lists.set(bucket, list);
      return list;
    },
    listAt(bucket, wanted) {
      if (wanted < compacted) return undefined;
      const objects = new Map(buckets.get(bucket));
      for (const change of log.toReversed()) {
        if (change.revision <= wanted) break;
        if (change.bucket !== bucket) continue;
        const key = keyOfObject(change.object);
        if (change.type === 'created') objects.delete(key);
        else objects.set(key, change.previous);
      }
      return sorted(objects);
    },
    put(bucket, given) {
      const objects = buckets.get(bucket) ?? new Map<string, StoredObject>();
      buckets.set(bucket, objects);
      const previous = objects.get(keyOfObject(given));
      const object = withRevision(given);
      objects.set(keyOfObject(object), object);
      if (previous === undefined) record({ type: 'created', revision, bucket, object });
      else record({ type: 'updated', revision, bucket, object, previous });
      return object;
    },
    remove(bucket, key) {
      const previous = buckets.get(bucket)?.get(key);
      if (previous === undefined) return undefined;
      buckets.get(bucket)?.delete(key);
      const object = withRevision(previous);
      record({ type: 'deleted', revision, bucket, object, previous });
      return object;
    },
    changesAfter(after) {
      if (after < compacted) return undefined;
      return log.filter((change) => change.revision > after);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function keyOfObject({ metadata }: StoredObject): string {
  return keyOf(metadata.namespace, metadata.name);
}

function sorted(objects: ReadonlyMap<string, StoredObject>): readonly StoredObject[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
