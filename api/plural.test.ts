import { expect, test } from 'vitest';
import { noun, plural, shortList } from './plural.ts';

test.each([
  [0, '0 nodes'],
  [1, '1 node'],
  [2, '2 nodes'],
  [11, '11 nodes'],
  [21, '21 nodes'],
  [101, '101 nodes'],
  [1.5, '1.5 nodes'],
])('%d is written as %s', (count, text) => {
  expect(plural(count, 'node')).toBe(text);
});

test('an irregular plural is given', () => {
  expect([plural(1, 'policy', 'policies'), plural(3, 'policy', 'policies')]).toEqual([
    '1 policy',
    '3 policies',
  ]);
});

test('the noun alone, for a list of names', () => {
  expect([noun(1, 'node'), noun(2, 'node'), noun(2, 'query', 'queries')]).toEqual([
    'node',
    'nodes',
    'queries',
  ]);
});

test.each([
  [[], ''],
  [['a'], 'a'],
  [['a', 'b'], 'a, b'],
  [['a', 'b', 'c', 'd'], 'a, b and 2 more'],
])('of %j, two are named: %s', (items, text) => {
  expect(shortList(items, 2)).toBe(text);
});
