import { expect, test } from 'vitest';
import { StatusError } from '../status.ts';
import {
  labelSelectorOf,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  readLabelSelector,
} from './selectors.ts';

test('a label selector that can’t be read is a bad request', () => {
  expect(() => readLabelSelector('a in b')).toThrow(StatusError);
});

test('a selector object selects by labels and by expressions', () => {
  const selector = labelSelectorOf({
    matchLabels: { a: 'b' },
    matchExpressions: [{ key: 'c', operator: 'Exists' }],
  });
  expect(matchesLabels(selector ?? [], { a: 'b', c: '' })).toBe(true);
  expect(matchesLabels(selector ?? [], { a: 'b' })).toBe(false);
  expect(labelSelectorOf(undefined)).toBeUndefined();
});

test('a field that is missing is empty', () => {
  const pod = { spec: { nodeName: 'n' }, status: {} };
  expect(matchesFields(parseFieldSelector('spec.nodeName=n,status.phase!=Running'), pod)).toBe(true);
  expect(matchesFields(parseFieldSelector('status.phase='), pod)).toBe(true);
  expect(matchesFields(parseFieldSelector('spec.nodeName=m'), pod)).toBe(false);
  expect(() => parseFieldSelector('nonsense')).toThrow(/invalid field selector/);
});

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
