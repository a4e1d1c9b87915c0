import { expect, it } from 'vitest';
import { condition } from '../../test/fixtures/objects.ts';
import { statusWait } from './status-pace.ts';

const before = {
  configuration: { name: 'one' },
  updatedMachineCount: 1,
  conditions: [condition('Updating', 'True', '1 of 9')],
};
const counts = { ...before, updatedMachineCount: 2, conditions: [condition('Updating', 'True', '2 of 9')] };

it.each([
  ['other counts right after a write', counts, 10_000, 10_200, 1_800],
  ['other counts two seconds later', counts, 10_000, 12_000, 0],
  ['the first write of a process', counts, undefined, 10_000, 0],
  ['a clock that was set back', counts, 10_000, 9_000, 0],
  ['nothing new', before, 10_000, 10_001, 0],
  ['a condition that turns', { ...counts, conditions: [condition('Updating', 'False')] }, 10_000, 10_001, 0],
  ['another configuration', { ...counts, configuration: { name: 'two' } }, 10_000, 10_001, 0],
])('%s', (_what, after, writtenAt, now, expected) => {
  expect(statusWait(before, after, writtenAt, now)).toBe(expected);
});
