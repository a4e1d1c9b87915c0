import { isNewer, type KubernetesObject } from '../api/object.ts';
import { type Informer, keyOf, withoutManagedFields } from '../cluster/informer.ts';

/** Of these many deletions the versions are kept: an answer that is slower than the watch comes within seconds. */
const MOST_DELETIONS = 10_000;

/**
 * A cache that includes what this process wrote before the watch shows it. A decision from the watch alone would miss
 * the node that was taken a moment ago and take another one, beyond maxUnavailable.
 */
export class FreshCache<T extends KubernetesObject> {
  readonly #informer: Informer<T>;
  readonly #keep: (object: T) => T;
  readonly #written = new Map<string, T>();
  /** What this process has deleted, as the watch had shown it. */
  readonly #deleted = new Map<string, T>();
  /** What the watch has shown the deletion of, in that order. */
  readonly #gone = new Map<string, Pick<KubernetesObject['metadata'], 'uid' | 'resourceVersion'>>();

  /** @param keep what of an object is held, as the informer holds it; by default all but managedFields. */
  constructor(informer: Informer<T>, keep: (object: T) => T = withoutManagedFields) {
    this.#informer = informer;
    this.#keep = keep;
    informer.onChange(({ type, object }) => {
      const key = keyOf(object.metadata);
      const written = this.#written.get(key);
      if (type === 'DELETED') {
        this.#deleted.delete(key);
        this.#bury(key, object);
      }
      if (written === undefined) return;
      // The deletion of an earlier object of the name does not concern the one that was created after it.
      const isGone = type === 'DELETED' && object.metadata.uid === written.metadata.uid;
      if (isGone || !isNewer(written, object)) this.#written.delete(key);
    });
  }

  /**
   * Remembers the API server's answer to a write, where the watch has not shown it yet. The watch may have been faster:
   * what it has shown to be deleted since would never go again.
   */
  remember(object: T): void {
    const { metadata } = object;
    const key = keyOf(metadata);
    if (this.#isGone(key, object)) return;
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

  #bury(key: string, { metadata: { uid, resourceVersion } }: T): void {
    // Again at the end.
    this.#gone.delete(key);
    this.#gone.set(key, { uid, resourceVersion });
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > MOST_DELETIONS && oldest !== undefined) this.#gone.delete(oldest);
  }

  /** Where a list showed that an object is gone, its last known version is all that there is: the uid decides. */
  #isGone(key: string, object: T): boolean {
    const gone = this.#gone.get(key);
    if (gone === undefined) return false;
    const { uid } = object.metadata;
    return (uid !== undefined && uid === gone.uid) || !isNewer(object, { metadata: gone });
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
