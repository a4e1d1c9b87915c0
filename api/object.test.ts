import { expect, test } from 'vitest';
import { isNewer, toSeconds } from './object.ts';

test('a time has whole seconds, and is never later than it was', () => {
  expect(toSeconds(new Date('2026-06-01T00:00:00.999Z'))).toBe('2026-06-01T00:00:00Z');
});

test.each([
  ['10', '9', true],
  ['9', '10', false],
  ['9', '9', false],
  ['9', undefined, true],
  [undefined, '9', false],
  ['later', '9', false],
  ['18446744073709551617', '18446744073709551616', true],
])('version %s is newer than %s: %s', (a, b, newer) => {
  const versioned = (resourceVersion: string | undefined) => ({ metadata: { resourceVersion } });
  expect(isNewer(versioned(a), versioned(b))).toBe(newer);
});
