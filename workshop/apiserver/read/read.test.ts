import { describe, expect, test } from 'vitest';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import { createStore, type Store } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { listObjects, parseSelection } from './list-objects.ts';
import { type WatchEvent, watchObjects } from './watch-objects.ts';

const resource = builtinResource('', 'configmaps');
const bucket = bucketOf(resource);

function configMap(name: string, labels: Record<string, string> = {}): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'x',
      uid: name,
      resourceVersion: '',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
    },
  };
}

const query = (text = '') => new URLSearchParams(text);
const select = (text = '') => parseSelection(resource, 'x', '', query(text));

function follow(store: Store, resourceVersion: string, selector = '', sendInitialEvents = false) {
  const events: WatchEvent[] = [];
  const stop = watchObjects(
    store,
    { resource, selection: select(selector), resourceVersion, sendInitialEvents },
    (event) => events.push(event),
  );
  const seen = () =>
    events.map(({ type, object }) => `${type} ${String(Object(object['metadata'])['name'] ?? '')}`);
  return { seen, stop, events };
}

describe('a list', () => {
  test('comes in pages that show one state', () => {
    const store = createStore();
    for (const name of ['a', 'b', 'c']) store.put(bucket, configMap(name));
    const first = listObjects(store, resource, select(), query('limit=2'));
    expect(first.objects.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
    expect(first.metadata['remainingItemCount']).toBe(1);
    store.remove(bucket, 'x/c');
    store.put(bucket, configMap('d'));
    const second = listObjects(
      store,
      resource,
      select(),
      query(`limit=2&continue=${first.metadata['continue']}`),
    );
    expect(second.objects.map(({ metadata }) => metadata.name)).toEqual(['c']);
    expect(second.metadata).toEqual({ resourceVersion: first.metadata['resourceVersion'] });
  });

  test('refuses a token that is none, and one whose state is forgotten', () => {
    const store = createStore(2);
    for (const name of ['a', 'b']) store.put(bucket, configMap(name));
    const { metadata } = listObjects(store, resource, select(), query('limit=1'));
    for (const name of ['c', 'd', 'e', 'f']) store.put(bucket, configMap(name));
    const next = query(`continue=${metadata['continue']}`);
    expect(() => listObjects(store, resource, select(), next)).toThrow('too old');
    expect(() => listObjects(store, resource, select(), query('continue=x'))).toThrow('not valid');
  });

  test('refuses a field that can not be selected by', () => {
    expect(() => select('fieldSelector=data.x%3D1')).toThrow('field label not supported: data.x');
  });
});

describe('a watch', () => {
  test('goes on after its resourceVersion', () => {
    const store = createStore();
    const { metadata } = store.put(bucket, configMap('a'));
    store.put(bucket, configMap('b'));
    const { seen, stop } = follow(store, metadata.resourceVersion);
    store.put(bucket, configMap('b', { k: 'v' }));
    store.remove(bucket, 'x/a');
    stop();
    store.put(bucket, configMap('c'));
    expect(seen()).toEqual(['ADDED b', 'MODIFIED b', 'DELETED a']);
  });

  test('without a resourceVersion begins with what is there', () => {
    const store = createStore();
    store.put(bucket, configMap('a'));
    const initial = follow(store, '', '', true);
    expect(initial.seen()).toEqual(['ADDED a', 'BOOKMARK ']);
    expect(JSON.stringify(initial.events[1])).toContain('initial-events-end');
    expect(follow(store, '0').seen()).toEqual(['ADDED a']);
  });

  test('by a selector sees objects come and go with their labels', () => {
    const store = createStore();
    const { seen } = follow(store, String(store.revision), 'labelSelector=k');
    store.put(bucket, configMap('a'));
    store.put(bucket, configMap('a', { k: 'v' }));
    store.put(bucket, configMap('a', { k: 'w' }));
    store.put(bucket, configMap('a'));
    store.remove(bucket, 'x/a');
    expect(seen()).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a']);
  });

  test('from a forgotten resourceVersion is refused with 410', () => {
    const store = createStore(2);
    const from = String(store.revision);
    for (const name of ['a', 'b', 'c', 'd']) store.put(bucket, configMap(name));
    expect(() => follow(store, from)).toThrow('too old resource version');
    expect(() => follow(store, 'x')).toThrow('too old resource version');
  });
});
