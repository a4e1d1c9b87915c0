import { InvalidArgumentError } from 'commander';
import { expect, test } from 'vitest';
import { formatDuration } from '../../api/duration.ts';
import { parseDurationFlag } from './quantities.ts';

test.each([
  ['90s', 90_000],
  ['30m', 1_800_000],
  ['1h30m', 5_400_000],
  ['7d', 604_800_000],
])('%s is %i ms', (text, ms) => {
  expect(parseDurationFlag(text)).toBe(ms);
});

test.each(['', '0s', '30', '-5m', '5m1h', '1.5h', 'soon'])('%j is not a duration', (text) => {
  expect(() => parseDurationFlag(text)).toThrow(InvalidArgumentError);
});

test.each([
  [0, '0s'],
  [999, '0s'],
  [61_000, '1m1s'],
  [3_600_000, '1h'],
  [90_061_000, '1d1h'],
])('%i ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
