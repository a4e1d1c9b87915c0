import { expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import { aNode } from '../test/fixtures/objects.ts';
import { FreshCache } from './fresh-cache.ts';

/** A watch that shows what a test says, when it says so. */
function aWatch() {
  const shown = new Map<string, Node>();
  const handlers: ((change: { type: 'DELETED'; object: Node }) => void)[] = [];
  const cache = new FreshCache<Node>({
    start: async () => {},
    synced: async () => {},
    get: (name) => shown.get(name),
    list: () => [...shown.values()],
    size: () => shown.size,
    onChange: (handler) => void handlers.push(handler),
  });
  return {
    cache,
    show: (node: Node) => shown.set(node.metadata.name, node),
    remove: (node: Node) => {
      shown.delete(node.metadata.name);
      for (const handler of handlers) handler({ type: 'DELETED', object: node });
    },
  };
}
const node = (resourceVersion: string, uid = 'u') =>
  aNode('n', { metadata: { name: 'n', uid, resourceVersion } });

it('shows an own write until the watch has caught up', () => {
  const { cache, show } = aWatch();
  show(node('9'));
  cache.remember(node('10'));
  expect(cache.get('n')?.metadata.resourceVersion).toBe('10');
  expect(cache.list().map(({ metadata }) => metadata.resourceVersion)).toEqual(['10']);
  show(node('11'));
  expect(cache.get('n')?.metadata.resourceVersion).toBe('11');
});

it('shows what was made before the watch has it, and nothing that is gone', () => {
  const { cache, remove } = aWatch();
  cache.remember(node('5'));
  expect(cache.get('n')).toBeDefined();
  remove(node('6'));
  expect(cache.get('n')).toBeUndefined();
});

it('an older answer does not hide a newer one', () => {
  const { cache } = aWatch();
  cache.remember(node('10'));
  cache.remember(node('9'));
  expect(cache.get('n')?.metadata.resourceVersion).toBe('10');
});

it('an object that was created again under the same name is another object', () => {
  const { cache, show } = aWatch();
  cache.remember(node('10', 'first'));
  show(node('12', 'second'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
});

it('keeps what was created again while the watch still shows what somebody else has deleted', () => {
  const { cache, show, remove } = aWatch();
  show(node('9', 'first'));
  cache.remember(node('11', 'second'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
  expect(cache.list().map(({ metadata }) => metadata.uid)).toEqual(['second']);
  remove(node('10', 'first'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
});

it('an answer about an older object does not hide the one that was created after it', () => {
  const { cache, show } = aWatch();
  show(node('12', 'second'));
  cache.remember(node('9', 'first'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
});

it('shows nothing of what was deleted, until the watch has a later one of that name', () => {
  const { cache, show, remove } = aWatch();
  show(node('9'));
  cache.forget(node('9'));
  expect(cache.get('n')).toBeUndefined();
  expect(cache.list()).toEqual([]);
  show(node('12', 'second'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
  remove(node('13', 'second'));
  expect(cache.get('n')).toBeUndefined();
});

it('shows an object that was created again right after it was deleted', () => {
  const { cache, show } = aWatch();
  show(node('9'));
  cache.forget(node('9'));
  cache.remember(node('11', 'second'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
});

it('the deletion of an older version does not hide what was written after it', () => {
  const { cache } = aWatch();
  cache.remember(node('10', 'second'));
  cache.forget(node('6', 'first'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
  cache.forget(node('10', 'second'));
  expect(cache.get('n')).toBeUndefined();
});

it('keeps what was created again when the watch shows the deletion of what had the name before', () => {
  const { cache, show, remove } = aWatch();
  show(node('9', 'first'));
  cache.forget(node('9', 'first'));
  cache.remember(node('11', 'second'));
  remove(node('10', 'first'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
  show(node('11', 'second'));
  remove(node('12', 'second'));
  expect(cache.get('n')).toBeUndefined();
});

it('an answer that comes after the watch has shown the deletion shows nothing', () => {
  const { cache, show, remove } = aWatch();
  show(node('9', 'first'));
  remove(node('12', 'first'));
  // The write was before the deletion; its answer was slower than the watch.
  cache.remember(node('10', 'first'));
  expect(cache.get('n')).toBeUndefined();
  cache.remember(node('11', 'before the first'));
  expect(cache.get('n')).toBeUndefined();
  cache.remember(node('14', 'second'));
  expect(cache.get('n')?.metadata.uid).toBe('second');
});

it('the same holds where a list showed that it is gone, which has no version of the deletion', () => {
  const { cache, show, remove } = aWatch();
  show(node('9'));
  remove(node('9'));
  cache.remember(node('10'));
  expect(cache.get('n')).toBeUndefined();
});
