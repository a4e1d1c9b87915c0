import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { nameSuffixes, type Selecting } from './name-suffixes.ts';

const object = (name: string, hour: number, pools: string[], suffix?: string): Selecting => ({
  pools,
  object: {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'KubeletConfig',
    metadata: {
      name,
      creationTimestamp: `2026-01-01T${String(hour).padStart(2, '0')}:00:00Z`,
      ...(suffix === undefined ? {} : { annotations: { [annotations.nameSuffix]: suffix } }),
    },
  },
});
const suffixes = (...objects: Selecting[]) => Object.fromEntries(nameSuffixes(objects));

test('the newest has the highest suffix, whatever its name', () => {
  expect(
    suffixes(object('a', 3, ['worker']), object('b', 1, ['worker']), object('c', 2, ['worker'])),
  ).toEqual({
    b: '',
    c: '1',
    a: '2',
  });
});

test('objects of other pools have suffixes of their own', () => {
  expect(suffixes(object('a', 1, ['worker']), object('b', 2, ['infra']))).toEqual({ a: '', b: '' });
  expect(suffixes(object('a', 1, ['worker']), object('b', 2, ['infra', 'worker']))).toEqual({
    a: '',
    b: '1',
  });
  expect(suffixes(object('a', 1, []))).toEqual({});
});

test('a suffix stays when an older object is gone, and the next one is higher', () => {
  expect(suffixes(object('b', 2, ['worker'], '1'), object('c', 3, ['worker']))).toEqual({ b: '1', c: '2' });
});

test('of two objects with the same suffix the older one keeps it', () => {
  expect(suffixes(object('copy', 2, ['worker'], ''), object('a', 1, ['worker'], ''))).toEqual({
    a: '',
    copy: '1',
  });
});

test('an annotation that is no suffix counts as none', () => {
  expect(suffixes(object('a', 1, ['worker'], '10'), object('b', 2, ['worker'], 'x'))).toEqual({
    a: '',
    b: '1',
  });
});

test('the eleventh object of a pool has none', () => {
  const all = Array.from({ length: 11 }, (_, index) => object(`n${index + 10}`, index, ['worker']));
  const found = nameSuffixes(all);
  expect(found.get('n19')).toBe('9');
  expect([found.has('n20'), found.get('n20')]).toEqual([true, undefined]);
});
