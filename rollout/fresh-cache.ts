import type { KubernetesObject } from '../api/object.ts';
import { type Informer, withoutManagedFields } from '../cluster/informer.ts';

/**
 * A cache that includes what this process wrote before the watch shows it. A decision from the watch alone would miss the
 * node that was taken a moment ago and take another one, beyond maxUnavailable.
 */
export class FreshCache<T extends KubernetesObject> {
  readonly #informer: Informer<T>;
  readonly #keep: (object: T) => T;
  readonly #written = new Map<string, T>();
  /** What this process has deleted, as the watch had shown it. */
  readonly #deleted = new Map<string, T>();

  /** @param keep what of an object is held, as the informer holds it; by default all but managedFields. */
  constructor(informer: Informer<T>, keep: (object: T) => T = withoutManagedFields) {
    this.#informer = informer;
    this.#keep = keep;
    informer.onChange(({ type, object }) => {
      const key = keyOf(object.metadata);
      const written = this.#written.get(key);
      if (type === 'DELETED') this.#deleted.delete(key);
      if (written === undefined) return;
      // The deletion of what had the name before is none of what was created after it.
      const isGone = type === 'DELETED' && object.metadata.uid === written.metadata.uid;
      if (isGone || !isNewer(written, object)) this.#written.delete(key);
    });
  }

  /** Remembers the API server's answer to a write, where the watch has not shown it yet. */
  remember(object: T): void {
    const { metadata } = object;
    const key = keyOf(metadata);
    const known = this.#latest(key, this.#informer.get(metadata.name, metadata.namespace));
    if (known === undefined || isNewer(object, known)) this.#written.set(key, this.#keep(object));
  }

  /** Hides an object that was deleted in this version, until the watch shows a later one of that name. */
  forget(object: T): void {
    const key = keyOf(object.metadata);
    const written = this.#written.get(key);
    if (written !== undefined && !isNewer(written, object)) this.#written.delete(key);
    this.#deleted.set(key, object);
  }

  /** @returns the newer of what the watch has shown and what was written last. */
  get(name: string, namespace?: string): T | undefined {
    return this.#latest(keyOf({ name, namespace }), this.#informer.get(name, namespace));
  }

  /** @returns every object the watch has shown, each as {@link get} would return it. */
  list(): readonly T[] {
    return this.#informer.list().flatMap((object) => this.#latest(keyOf(object.metadata), object) ?? []);
  }

  /** @returns how many objects the watch has shown. */
  size(): number {
    return this.#informer.size();
  }

  onChange(handler: Parameters<Informer<T>['onChange']>[0]): void {
    this.#informer.onChange(handler);
  }

  start(signal: AbortSignal): Promise<void> {
    return this.#informer.start(signal);
  }

  synced(): Promise<void> {
    return this.#informer.synced();
  }

  #latest(key: string, watched: T | undefined): T | undefined {
    const deleted = this.#deleted.get(key);
    const isGone = watched !== undefined && deleted !== undefined && !isNewer(watched, deleted);
    return this.#newest(key, isGone ? undefined : watched);
  }

  #newest(key: string, watched: T | undefined): T | undefined {
    const written = this.#written.get(key);
    if (written === undefined) return watched;
    // Also of two objects of one name the newer one counts: the watch may still show the one that was deleted.
    if (watched !== undefined && !isNewer(written, watched)) {
      this.#written.delete(key);
      return watched;
    }
    return written;
  }
}

function keyOf({
  name,
  namespace = '',
}: {
  readonly name: string;
  readonly namespace?: string | undefined;
}): string {
  return `${namespace}/${name}`;
}

/** Resource versions of one kind compare as integers (KEP-5504); one that does not is never newer. */
function isNewer(a: KubernetesObject, b: KubernetesObject): boolean {
  return versionOf(a) > versionOf(b);
}

function versionOf({ metadata }: KubernetesObject): bigint {
  const text = metadata.resourceVersion ?? '';
  return /^\d+$/.test(text) ? BigInt(text) : 0n;
}
