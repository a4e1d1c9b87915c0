import { expect, test } from 'vitest';
import { timeLimitMs } from './time-limit.ts';

test.each([
  ['is never less than what starting takes', 'unit', 500, 10_000],
  ['is four times that of the unchanged code', 'unit', 5_000, 20_000],
  ['is bounded', 'unit', 40_000, 120_000],
  ['is three times that where this is slow', 'unit', 60_000, 180_000],
  ['is longer for integration', 'integration', 20_000, 80_000],
  ['is bounded for integration', 'integration', 90_000, 300_000],
] as const)('the time of a mutant %s', (_what, project, unchangedMs, expected) => {
  expect(timeLimitMs(project, unchangedMs)).toBe(expected);
});
