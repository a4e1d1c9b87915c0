import { expect, test } from 'vitest';
import type { Condition } from '../api/object.ts';
import { withLayeringCondition } from './status.ts';
import type { SwitchState } from './switch.ts';

const now = new Date('2026-06-01T00:00:00Z');
const other: Condition = {
  type: 'Other',
  status: 'True',
  reason: 'R',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
const on: SwitchState = { kind: 'on', settings: { imageRepository: 'r.io/os/{pool}' } };
const invalid: SwitchState = { kind: 'invalid', problems: [{ key: 'pools', problem: 'is odd' }] };

test('on and invalid are reported, each with its details', () => {
  const conditions = withLayeringCondition([other], on, now);
  expect(conditions).toEqual([
    other,
    {
      type: 'Layering',
      status: 'True',
      reason: 'SwitchedOn',
      message: 'Images are pushed to r.io/os/{pool}',
      lastTransitionTime: '2026-06-01T00:00:00Z',
    },
  ]);
  expect(withLayeringCondition(conditions, invalid, now)[1]).toMatchObject({
    status: 'Unknown',
    reason: 'InvalidSwitch',
    message: expect.stringContaining('data.pools: is odd'),
  });
});

test('off leaves the conditions as they were before', () => {
  const before = [other];
  expect(withLayeringCondition(withLayeringCondition(before, on, now), { kind: 'off' }, now)).toEqual(before);
});

test('any number of problems fits', () => {
  const problems = Array.from({ length: 200 }, (_, index) => ({ key: `k${index}`, problem: 'unknown key' }));
  const [condition] = withLayeringCondition([], { kind: 'invalid', problems }, now);
  expect(condition?.message.length).toBeLessThanOrEqual(2048);
});
