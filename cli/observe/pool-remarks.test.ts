import { expect, test } from 'vitest';
import { remarkOn } from './pool-remarks.ts';

const NODES = new Set(['a', 'b', 'c']);
const MESSAGE =
  "1 of 3 nodes run rendered-worker-1; a: is being drained; pod default/web can't be evicted: PodDisruptionBudget web (allows 0 disruptions); 2 pod(s) still end: default/x; b: passed by: its lease is held by ops; and 1 more";

test.each([
  [
    'a',
    "is being drained; pod default/web can't be evicted: PodDisruptionBudget web (allows 0 disruptions); 2 pod(s) still end: default/x",
  ],
  ['b', 'passed by: its lease is held by ops'],
  ['c', undefined],
])('of node %s', (node, remark) => {
  expect(remarkOn(MESSAGE, node, NODES)).toBe(remark);
});

test('no remarks at all', () => {
  expect(remarkOn('The pool is paused; 0 of 3 nodes run rendered-worker-1', 'a', NODES)).toBeUndefined();
});
