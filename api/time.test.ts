import { expect, test } from 'vitest';
import { toSeconds } from './time.ts';

test('a time has whole seconds, and is never later than it was', () => {
  expect(toSeconds(new Date('2026-06-01T00:00:00.999Z'))).toBe('2026-06-01T00:00:00Z');
});
