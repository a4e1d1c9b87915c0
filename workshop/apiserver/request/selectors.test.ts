import { expect, test } from 'vitest';
import { StatusError } from '../status.ts';
import { matchesLabels } from './label-selector.ts';
import { labelSelectorOf, matchesFields, parseFieldSelector, readLabelSelector } from './selectors.ts';

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
