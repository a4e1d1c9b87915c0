import type { KubernetesObject } from '../../api/object.ts';
import type { ObjectChange } from '../../cluster/informer.ts';
import type { PageCaches, Watched } from '../../page/server/page-caches.ts';
import type { Fleet } from './fleet.ts';

/** Objects of one kind that a test changes itself. */
class MemoryCache<T extends KubernetesObject> implements Watched<T> {
  readonly #objects: Map<string, T>;
  readonly #handlers: ((change: ObjectChange<T>) => void)[] = [];

  constructor(objects: readonly T[]) {
    this.#objects = new Map(objects.map((object) => [object.metadata.name, object]));
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  onChange(handler: (change: ObjectChange<T>) => void): void {
    this.#handlers.push(handler);
  }

  async synced(): Promise<void> {}

  put(object: T): void {
    this.#objects.set(object.metadata.name, object);
    for (const handler of this.#handlers) handler({ type: 'MODIFIED', object });
  }
}

/** What a watch of a fleet would hold, without an API server: thousands of nodes take a minute to put into one. */
export function memoryCaches(fleet: Fleet) {
  return {
    pools: new MemoryCache(fleet.pools),
    machineConfigNodes: new MemoryCache(fleet.machineConfigNodes),
    nodes: new MemoryCache(fleet.nodes),
    machineOSBuilds: new MemoryCache(fleet.builds),
    leases: new MemoryCache(fleet.leases),
    machineConfigurations: new MemoryCache([fleet.machineConfiguration]),
  } satisfies PageCaches;
}
