import { expect, test } from 'vitest';
import type { OwnerReference, StoredObject } from '../stored-object.ts';
import { findGarbage } from './garbage.ts';

function object(uid: string, metadata: Partial<StoredObject['metadata']> = {}): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: uid, namespace: 'x', uid, resourceVersion: '1', creationTimestamp: '', ...metadata },
  };
}

const owner = (uid: string, blockOwnerDeletion = false): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: uid,
  uid,
  blockOwnerDeletion,
});

const going = (finalizer: string) => ({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] });

const found = (...objects: StoredObject[]) =>
  findGarbage(objects).map((each) => `${each.type} ${each.object.metadata.uid}`);

test('what lost all of its owners goes', () => {
  const child = object('c', { ownerReferences: [owner('a'), owner('b')] });
  expect(found(object('a'), child)).toEqual([]);
  expect(found(child)).toEqual(['delete c']);
  expect(found(object('d'))).toEqual([]);
});

test('an owner in another namespace is none', () => {
  expect(found(object('a', { namespace: 'y' }), object('c', { ownerReferences: [owner('a')] }))).toEqual([
    'delete c',
  ]);
});

test('foreground deletion waits for those that block it', () => {
  const parent = object('a', going('foregroundDeletion'));
  const child = object('c', { ownerReferences: [owner('a', true)] });
  expect(found(parent, child)).toEqual(['delete c']);
  const leaving = object('c', { ownerReferences: [owner('a', true)], ...going('x') });
  expect(found(parent, leaving)).toEqual([]);
  expect(found(parent)).toEqual(['release a']);
});

test('orphaning lets the dependents stay', () => {
  const parent = object('a', going('orphan'));
  expect(found(parent, object('c', { ownerReferences: [owner('a')] }))).toEqual(['disown c']);
  expect(found(parent)).toEqual(['release a']);
});
