import { FOREGROUND, ORPHAN } from '../objects/delete-object.ts';
import type { StoredObject } from '../stored-object.ts';

/** What the garbage collector does next with an object (Kubernetes, "Garbage Collection"). */
export type Collection =
  /** Its owners are gone: it goes too. */
  | {
      readonly type: 'delete';
      readonly object: StoredObject;
      readonly propagation: 'Background' | 'Foreground';
    }
  /** Its owner goes and leaves it behind. */
  | { readonly type: 'disown'; readonly object: StoredObject; readonly owner: string }
  /** Everything that held its deletion is done. */
  | { readonly type: 'release'; readonly object: StoredObject; readonly finalizer: string };

/** @returns what to collect among all objects of the cluster. */
export function findGarbage(objects: readonly StoredObject[]): readonly Collection[] {
  const byUid = new Map(objects.map((object) => [object.metadata.uid, object]));
  const dependents = new Map<string, StoredObject[]>();
  for (const object of objects) {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      dependents.set(uid, [...(dependents.get(uid) ?? []), object]);
    }
  }
  const orphaned = objects.filter((object) => lostItsOwners(object, byUid));
  return [
    ...orphaned.map((object): Collection => ({ type: 'delete', object, propagation: 'Background' })),
    ...objects.flatMap((object) => collectionsOfOwner(object, dependents.get(object.metadata.uid) ?? [])),
  ];
}

function lostItsOwners(object: StoredObject, byUid: ReadonlyMap<string, StoredObject>): boolean {
  const { ownerReferences = [], deletionTimestamp } = object.metadata;
  if (ownerReferences.length === 0 || deletionTimestamp !== undefined) return false;
  return ownerReferences.every(({ uid }) => {
    const owner = byUid.get(uid);
    // An owner in another namespace is no owner.
    return (
      owner === undefined ||
      (owner.metadata.namespace ?? object.metadata.namespace) !== object.metadata.namespace
    );
  });
}

function collectionsOfOwner(owner: StoredObject, dependents: readonly StoredObject[]): readonly Collection[] {
  const { finalizers = [], deletionTimestamp, uid } = owner.metadata;
  if (deletionTimestamp === undefined) return [];
  if (finalizers.includes(ORPHAN)) {
    return dependents.length === 0
      ? [{ type: 'release', object: owner, finalizer: ORPHAN }]
      : dependents.map((object) => ({ type: 'disown', object, owner: uid }));
  }
  if (!finalizers.includes(FOREGROUND)) return [];
  const blocking = dependents.filter(({ metadata }) =>
    (metadata.ownerReferences ?? []).some(
      (reference) => reference.uid === uid && reference.blockOwnerDeletion === true,
    ),
  );
  return [
    ...dependents
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((object): Collection => ({ type: 'delete', object, propagation: 'Foreground' })),
    ...(blocking.length === 0 ? [{ type: 'release', object: owner, finalizer: FOREGROUND } as const] : []),
  ];
}
