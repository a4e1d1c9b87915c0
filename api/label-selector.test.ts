import { describe, expect, test } from 'vitest';
import {
  type LabelSelector,
  labelsWithNames,
  matchesSelector,
  parseLabelSelector,
} from './label-selector.ts';

test.each([
  ['', {}, true],
  ['a=b', { a: 'b' }, true],
  ['a==b', { a: 'c' }, false],
  ['a!=b', {}, true],
  ['a!=b', { a: 'b' }, false],
  ['a in (b, c),d', { a: 'c', d: '' }, true],
  ['a in (b,c),d', { a: 'c' }, false],
  ['a notin (b)', {}, true],
  ['!a', { a: '' }, false],
  ['node-role.kubernetes.io/worker', { 'node-role.kubernetes.io/worker': '' }, true],
  ['node-role.kubernetes.io/worker=', { 'node-role.kubernetes.io/worker': '' }, true],
  ['toString', {}, false],
])('%s on %j is %s', (selector, labels: Record<string, string>, expected) => {
  expect(matchesSelector(parseLabelSelector(selector), labels)).toBe(expected);
});

test.each(['a in b', '=x', 'a=(', 'a b'])('%s is refused', (selector) => {
  expect(() => parseLabelSelector(selector)).toThrow(/unable to parse/);
});

describe('label selectors as fields', () => {
  const labels = { a: '1', b: '2' };
  const expression = (
    key: string,
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist',
    ...values: string[]
  ) => ({
    matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }],
  });

  test.each<[LabelSelector, boolean]>([
    [{}, true],
    [{ matchLabels: { a: '1' } }, true],
    [{ matchLabels: { a: '1', b: '2' } }, true],
    [{ matchLabels: { a: '2' } }, false],
    [{ matchLabels: { c: '' } }, false],
    [{ matchLabels: { constructor: '' } }, false],
    [expression('a', 'In', '0', '1'), true],
    [expression('a', 'In', '0'), false],
    [expression('c', 'In', '0'), false],
    [expression('a', 'NotIn', '0'), true],
    [expression('a', 'NotIn', '1'), false],
    [expression('c', 'NotIn', '1'), true],
    [expression('a', 'Exists'), true],
    [expression('c', 'Exists'), false],
    [expression('a', 'DoesNotExist'), false],
    [expression('c', 'DoesNotExist'), true],
    [{ matchLabels: { a: '1' }, ...expression('b', 'In', '3') }, false],
  ])('%j: %s', (selector, matches) => {
    expect(matchesSelector(selector, labels)).toBe(matches);
  });
});

test('a name that is too long for the value of a label is left out', () => {
  const name = 'n'.repeat(63);
  expect(labelsWithNames({ a: name, b: `${name}n` })).toEqual({ a: name });
});
