import { InvalidArgumentError } from 'commander';
import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { node } from '../../test/fixtures/observed-cluster.ts';
import { flagOf, flagText, parseUntil } from './node-access.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');

test.each([
  ['4h', '2026-11-20T14:00:00.000Z'],
  ['2026-11-20T18:00:00Z', '2026-11-20T18:00:00.000Z'],
  ['2026-11-20T18:00:00+02:00', '2026-11-20T16:00:00.000Z'],
])('until %s', (text, until) => {
  expect(new Date(parseUntil(text, NOW)).toISOString()).toBe(until);
});

test.each(['tomorrow', '2026-11-20T09:00:00Z', '2026-13-20T09:00:00Z', '18:00'])('%s is refused', (text) => {
  expect(() => parseUntil(text, NOW)).toThrow(InvalidArgumentError);
});

test('a flag is read as it was written, and an unreadable one is a flag without a reason', () => {
  const flag = { reason: 'disk', by: 'me', until: '2026-11-20T14:00:00Z', uncordon: true };
  expect(flagOf(node('a', { [annotations.plannedMaintenance]: flagText(flag) }))).toEqual(flag);
  expect(flagOf(node('a', { [annotations.plannedMaintenance]: 'disk' }))).toEqual({ reason: '', by: '' });
  expect(flagOf(node('a'))).toBeUndefined();
});
