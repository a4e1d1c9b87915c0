import { expect, test } from 'vitest';
import type { StoredObject } from '../stored-object.ts';
import { createStore } from './store.ts';

const object = (name: string, value = ''): StoredObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'n', uid: name, resourceVersion: '', creationTimestamp: '' },
  data: { value },
});
const names = (objects: readonly StoredObject[] | undefined) =>
  objects?.map(({ metadata, data }) => `${metadata.name}:${JSON.stringify(data)}`);

test('each write has a revision of its own, and deletion is one', () => {
  const store = createStore();
  const first = store.put('c', object('a'));
  const second = store.put('c', object('a', 'x'));
  const gone = store.remove('c', 'n/a');
  const revisions = [first, second, gone].map((each) => Number(each?.metadata.resourceVersion));
  expect(new Set(revisions).size).toBe(3);
  expect(revisions).toEqual([...revisions].sort());
  expect(store.get('c', 'n/a')).toBeUndefined();
  expect(store.remove('c', 'n/a')).toBeUndefined();
});

test('a bucket can be read as it was', () => {
  const store = createStore();
  store.put('c', object('a', 'old'));
  store.put('c', object('gone'));
  const then = store.revision;
  store.put('c', object('a', 'new'));
  store.put('c', object('b'));
  store.remove('c', 'n/gone');
  store.put('other', object('a'));
  expect(names(store.listAt('c', then))).toEqual(['a:{"value":"old"}', 'gone:{"value":""}']);
  expect(names(store.list('c'))).toEqual(['a:{"value":"new"}', 'b:{"value":""}']);
});

test('what was forgotten is not guessed', () => {
  const store = createStore(4);
  const start = store.revision;
  for (let i = 0; i < 10; i += 1) store.put('c', object('a', String(i)));
  expect(store.changesAfter(start)).toBeUndefined();
  expect(store.listAt('c', start)).toBeUndefined();
  expect(store.changesAfter(store.revision - 1)).toHaveLength(1);
  expect(store.changesAfter(1)).toBeUndefined();
});

test('a listener hears every change in order until it stops', () => {
  const store = createStore();
  const heard: string[] = [];
  const stop = store.subscribe((change) => heard.push(change.type));
  store.put('c', object('a'));
  store.put('c', object('a', 'x'));
  store.remove('c', 'n/a');
  stop();
  store.put('c', object('b'));
  expect(heard).toEqual(['created', 'updated', 'deleted']);
});
