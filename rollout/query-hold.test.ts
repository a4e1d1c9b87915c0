import { expect, it } from 'vitest';
import { parseQueryHold } from './query-hold.ts';

it.each<[string, readonly string[]]>([
  ['up == 0', ['up == 0']],
  [' up == 0 \n\nsum by (job) (rate(errors[5m])) > 1\n', ['up == 0', 'sum by (job) (rate(errors[5m])) > 1']],
])('%j are queries', (text, questions) => {
  expect(parseQueryHold(text)).toEqual({ kind: 'named', questions });
});

it.each([
  ['', 'it has no query'],
  [' \n ', 'it has no query'],
  [`up == ${'0'.repeat(5000)}`, 'longer than 4096 characters'],
])('%j is refused', (text, why) => expect(() => parseQueryHold(text)).toThrow(why));
