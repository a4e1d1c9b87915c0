import { describe, expect, test } from 'vitest';
import { type Condition, LONGEST_MESSAGE } from '../api/object.ts';
import { ApiError } from './api-client.ts';
import { conditionIsTrue, retryOnConflict, setCondition } from './update-object.ts';

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

test('a message that is longer than the API server takes is cut', () => {
  const message = 'x'.repeat(LONGEST_MESSAGE);
  expect(setCondition([], { ...ready, message }, later)[0]?.message).toBe(message);
  expect(setCondition([], { ...ready, message: `${message}y` }, later)[0]?.message).toBe(
    `${message.slice(1)}…`,
  );
});

test('a message of several lines is one line: kubectl shows conditions in tables', () => {
  const message = 'check 10-etcd failed: etcd is away\n\n  2 of 3 are healthy\r\n';
  expect(setCondition([], { ...ready, message }, later)[0]?.message).toBe(
    'check 10-etcd failed: etcd is away; 2 of 3 are healthy',
  );
});

describe('retryOnConflict', () => {
  /** Fails with these errors, one after the other, and then succeeds. */
  const failing = (errors: readonly Error[]) => {
    let calls = 0;
    return {
      calls: () => calls,
      act: async () => {
        const error = errors[calls];
        calls += 1;
        if (error !== undefined) throw error;
        return 'written';
      },
    };
  };
  const refused = (status: number, reason: string) => new ApiError(status, 'patch', { reason });

  test.each([
    ['the object changed', refused(409, 'Conflict')],
    ['the object was created', refused(409, 'AlreadyExists')],
  ])('acts again when %s in between', async (_, error) => {
    const { act, calls } = failing([error, error]);
    expect(await retryOnConflict(act)).toBe('written');
    expect(calls()).toBe(3);
  });

  test('throws another error at once', async () => {
    const forbidden = refused(403, 'Forbidden');
    const { act, calls } = failing([forbidden]);
    await expect(retryOnConflict(act)).rejects.toBe(forbidden);
    expect(calls()).toBe(1);
  });

  test('throws the last conflict when they do not end', async () => {
    const errors = Array.from({ length: 20 }, () => refused(409, 'Conflict'));
    const { act, calls } = failing(errors);
    await expect(retryOnConflict(act)).rejects.toBe(errors[5]);
    expect(calls()).toBe(6);
  });
});
