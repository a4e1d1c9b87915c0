import type { KubernetesObject } from '../api/object.ts';

/**
 * What this process wrote and its cache has not seen yet. A decision made on the cache alone would forget the node it
 * took a moment ago and take another one, beyond maxUnavailable.
 */
export class OwnWrites<T extends KubernetesObject> {
  readonly #written = new Map<string, T>();

  /** Keeps what the API server answered to a write. */
  remember(object: T): void {
    const known = this.#written.get(object.metadata.name);
    if (known === undefined || isNewer(object, known)) this.#written.set(object.metadata.name, object);
  }

  /** The object is gone; nothing that was written to it counts any more. */
  forget(name: string): void {
    this.#written.delete(name);
  }

  /** @returns the newer of the cached object and what was written last. */
  latest(name: string, cached: T | undefined): T | undefined {
    const written = this.#written.get(name);
    if (written === undefined) return cached;
    const replaced = cached !== undefined && cached.metadata.uid !== written.metadata.uid;
    if (cached !== undefined && (replaced || !isNewer(written, cached))) {
      this.#written.delete(name);
      return cached;
    }
    return written;
  }
}

/** Resource versions of one kind can be compared as integers (KEP-5504). */
function isNewer(a: KubernetesObject, b: KubernetesObject): boolean {
  return version(a) > version(b);
}

function version({ metadata }: KubernetesObject): bigint {
  const text = metadata.resourceVersion ?? '';
  return /^\d+$/.test(text) ? BigInt(text) : 0n;
}
