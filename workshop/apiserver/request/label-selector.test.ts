import { expect, test } from 'vitest';
import { matchesLabels, parseLabelSelector } from './label-selector.ts';

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
  expect(matchesLabels(parseLabelSelector(selector), labels)).toBe(expected);
});

test.each(['a in b', '=x', 'a=(', 'a b'])('%s is refused', (selector) => {
  expect(() => parseLabelSelector(selector)).toThrow(/unable to parse/);
});
