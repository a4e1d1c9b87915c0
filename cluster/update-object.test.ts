import { expect, test } from 'vitest';
import type { Condition } from '../api/object.ts';
import { conditionIsTrue, setCondition } from './update-object.ts';

const earlier = new Date('2026-01-01T00:00:00.500Z');
const later = new Date('2026-01-02T00:00:00Z');
const ready = { type: 'Ready', status: 'True', reason: 'Up', message: '' } as const;

test('the time of a condition changes with its status only', () => {
  const first = setCondition([], ready, earlier);
  const again = setCondition(first, { ...ready, reason: 'StillUp' }, later);
  const down = setCondition(again, { ...ready, status: 'False' }, later);
  expect([first, again, down].map(([condition]) => condition?.lastTransitionTime)).toEqual([
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z',
    '2026-01-02T00:00:00Z',
  ]);
  expect(again[0]?.reason).toBe('StillUp');
});

test('a condition keeps its place among the others', () => {
  const others: Condition[] = [
    { ...ready, type: 'A', lastTransitionTime: '' },
    { ...ready, type: 'B', lastTransitionTime: '' },
  ];
  expect(
    setCondition(others, { ...ready, type: 'A', status: 'False' }, later).map(({ type }) => type),
  ).toEqual(['A', 'B']);
  expect(conditionIsTrue(others, 'A')).toBe(true);
  expect(conditionIsTrue(others, 'C')).toBe(false);
});
