import type { Kind, KubernetesObject } from '../../api/object.ts';
import { type ApiClient, ApiError, type DeleteOptions } from '../../cluster/api-client.ts';
import type { Change, Informer } from '../../cluster/informer.ts';

/** What befalls a request that writes. */
export type Trouble = 'none' | 'conflict' | 'unavailable' | 'killed';

/** The process that sent the request was killed: nothing of it goes on. */
export class Killed extends Error {}

/**
 * A cluster's objects in memory, as exact as the controllers of this room need it: resource versions, conflicts, merge
 * patches. What it lacks (schemas, watches over a connection) is tested on the API server of the sandbox.
 */
export class MemoryCluster {
  readonly #objects = new Map<string, Map<string, KubernetesObject>>();
  #version = 0;
  /** Asked before each write of a client. */
  trouble: () => Trouble = () => 'none';
  /** Told after each write of anybody. */
  onWrite: () => void = () => undefined;

  list<T extends KubernetesObject>(kind: Kind<T>): readonly T[] {
    return [...this.#of(kind).values()] as T[];
  }

  get<T extends KubernetesObject>(kind: Kind<T>, name: string): T | undefined {
    return this.#of(kind).get(name) as T | undefined;
  }

  /** Writes an object past every trouble and every check: what others do to the cluster. */
  put<T extends KubernetesObject>(kind: Kind<T>, object: T): T {
    this.#version += 1;
    const written = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    };
    this.#of(kind).set(object.metadata.name, written);
    this.onWrite();
    return written;
  }

  remove<T extends KubernetesObject>(kind: Kind<T>, name: string): void {
    this.#of(kind).delete(name);
    this.onWrite();
  }

  /** @returns a client that meets the troubles. */
  client(): ApiClient {
    const find = <T extends KubernetesObject>(kind: Kind<T>, name: string) => this.get(kind, name);
    const present = <T extends KubernetesObject>(kind: Kind<T>, name: string): T => {
      const found = find(kind, name);
      if (found === undefined) throw new ApiError(404, name, { reason: 'NotFound' });
      return found;
    };
    const replace = async <T extends KubernetesObject>(kind: Kind<T>, object: T): Promise<T> => {
      this.#meetTrouble(object.metadata.name);
      sameVersion(present(kind, object.metadata.name), object.metadata.resourceVersion);
      return this.put(kind, object);
    };
    return {
      get: async (kind, name) => present(kind, name),
      find: async (kind, name) => find(kind, name),
      list: async (kind) => ({ items: this.list(kind), resourceVersion: String(this.#version) }),
      watch: () => {
        throw new Error('informers of this cluster are told of changes without a watch');
      },
      create: async (kind, object) => {
        const { name = '' } = object.metadata;
        this.#meetTrouble(name);
        if (find(kind, name) !== undefined) throw new ApiError(409, name, { reason: 'AlreadyExists' });
        const metadata = { ...object.metadata, name, uid: `uid-${this.#version}` };
        return this.put(kind, { ...object, metadata } as never);
      },
      replace,
      replaceStatus: replace,
      patch: async (kind, name, patch) => {
        this.#meetTrouble(name);
        const before = present(kind, name);
        const body = patch.body as { readonly metadata?: { readonly resourceVersion?: string } };
        sameVersion(before, body.metadata?.resourceVersion);
        return this.put(kind, merged(before, body) as typeof before);
      },
      patchStatus: () => Promise.reject(new Error('nobody in this room patches a status')),
      delete: async (kind, name, options: DeleteOptions = {}) => {
        this.#meetTrouble(name);
        const found = find(kind, name);
        if (found === undefined) return false;
        sameVersion(found, options.preconditions?.resourceVersion);
        this.remove(kind, name);
        return true;
      },
      evict: async () => undefined,
    };
  }

  #of(kind: Kind<KubernetesObject>): Map<string, KubernetesObject> {
    const key = `${kind.group}/${kind.plural}`;
    const objects = this.#objects.get(key) ?? new Map<string, KubernetesObject>();
    this.#objects.set(key, objects);
    return objects;
  }

  #meetTrouble(name: string): void {
    const trouble = this.trouble();
    if (trouble === 'killed') throw new Killed();
    if (trouble === 'conflict') throw new ApiError(409, name, { reason: 'Conflict' });
    if (trouble === 'unavailable') throw new ApiError(503, name, { reason: 'ServiceUnavailable' });
  }
}

/** An informer that shows the cluster as it was when {@link SteppedInformer.catchUp} was last called. */
export class SteppedInformer<T extends KubernetesObject> implements Informer<T> {
  readonly #cluster: MemoryCluster;
  readonly #kind: Kind<T>;
  readonly #handlers: ((change: Change<T>) => void)[] = [];
  #seen = new Map<string, T>();

  constructor(cluster: MemoryCluster, kind: Kind<T>) {
    this.#cluster = cluster;
    this.#kind = kind;
  }

  catchUp(): void {
    const before = this.#seen;
    this.#seen = new Map(this.#cluster.list(this.#kind).map((object) => [object.metadata.name, object]));
    for (const [name, old] of before) {
      if (this.#seen.get(name)?.metadata.uid !== old.metadata.uid)
        this.#tell({ type: 'DELETED', object: old, old });
    }
    for (const [name, object] of this.#seen) {
      const old = before.get(name);
      if (old === undefined || old.metadata.uid !== object.metadata.uid)
        this.#tell({ type: 'ADDED', object });
      else if (old !== object) this.#tell({ type: 'MODIFIED', object, old });
    }
  }

  start = async () => undefined;
  synced = async () => undefined;
  get = (name: string) => this.#seen.get(name);
  list = () => [...this.#seen.values()];
  size = () => this.#seen.size;

  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
  }

  #tell(change: Change<T>): void {
    for (const handler of this.#handlers) handler(change);
  }
}

function sameVersion({ metadata }: KubernetesObject, expected: string | undefined): void {
  if (expected !== undefined && expected !== metadata.resourceVersion)
    throw new ApiError(409, metadata.name, { reason: 'Conflict' });
}

/** RFC 7386, "JSON Merge Patch". */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
