import type { Json, JsonObject } from '../json.ts';
import { apiVersionOf, bucketOf, type Resource } from '../resources/resource.ts';
import { expired } from '../status.ts';
import type { Change, Store } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import type { Selection } from './list-objects.ts';

/** One line of a watch (metav1.WatchEvent). */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: StoredObject }
  | { readonly type: 'BOOKMARK'; readonly object: JsonObject };

export interface WatchRequest {
  readonly resource: Resource;
  readonly selection: Selection;
  /** As in the query: '' or '0' begins with what is there now, as events of type ADDED. */
  readonly resourceVersion: string;
  /** sendInitialEvents: what is there now first, then a bookmark that says so (KEP-3157). */
  readonly sendInitialEvents: boolean;
}

/**
 * Follows a resource from a resourceVersion on.
 *
 * @param send gets the events, first those that lie in the past, before this returns.
 * @returns a function that ends it.
 * @throws StatusError 410 when the store has forgotten what came after the resourceVersion.
 */
export function watchObjects(
  store: Store,
  request: WatchRequest,
  send: (event: WatchEvent) => void,
): () => void {
  const { resource, selection, resourceVersion } = request;
  const bucket = bucketOf(resource);
  const deliver = (change: Change) => {
    if (change.bucket !== bucket) return;
    const event = eventOf(change, selection);
    if (event !== undefined) send(event);
  };
  if (resourceVersion === '' || resourceVersion === '0' || request.sendInitialEvents) {
    for (const object of store.list(bucket).filter(selection)) send({ type: 'ADDED', object });
    if (request.sendInitialEvents) send(bookmark(store, resource, { 'k8s.io/initial-events-end': 'true' }));
    return store.subscribe(deliver);
  }
  const from = Number(resourceVersion);
  const past = Number.isInteger(from) ? store.changesAfter(from) : undefined;
  if (past === undefined) throw tooOld(resourceVersion, store.compacted);
  for (const change of past) deliver(change);
  return store.subscribe(deliver);
}

/** @returns the error that an ERROR event of a watch holds, and that a watch from too long ago is answered with. */
function tooOld(resourceVersion: string, compacted: number) {
  return expired(`too old resource version: ${resourceVersion} (${compacted})`);
}

/** @returns an event that says only up to which resourceVersion everything was sent. */
export function bookmark(
  store: Store,
  resource: Resource,
  annotations?: Readonly<Record<string, string>>,
): WatchEvent {
  const metadata: Record<string, Json> = { resourceVersion: String(store.revision), creationTimestamp: null };
  return {
    type: 'BOOKMARK',
    object: {
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: annotations === undefined ? metadata : { ...metadata, annotations },
    },
  };
}

/** An object that comes into or leaves the selection is added or deleted for clients that watch by it. */
function eventOf(change: Change, selection: Selection): WatchEvent | undefined {
  const { object } = change;
  switch (change.type) {
    case 'created':
      return selection(object) ? { type: 'ADDED', object } : undefined;
    case 'deleted':
      return selection(change.previous) ? { type: 'DELETED', object } : undefined;
    case 'updated': {
      const before = selection(change.previous);
      if (selection(object)) return { type: before ? 'MODIFIED' : 'ADDED', object };
      if (!before) return undefined;
      const { resourceVersion } = object.metadata;
      // The last state that was selected, at the revision of the change, as the watch cache sends it.
      return {
        type: 'DELETED',
        object: { ...change.previous, metadata: { ...change.previous.metadata, resourceVersion } },
      };
    }
  }
}
