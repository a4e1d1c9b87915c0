import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shellWords } from './shell-words.ts';

test('plain words stay as they are', () => {
  expect(shellWords(['ostree', 'admin', 'deploy', '--karg-append=root=UUID=a', '/x'])).toBe(
    'ostree admin deploy --karg-append=root=UUID=a /x',
  );
});

test('a shell reads any words as they were', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string().filter((word) => !word.includes('\0')),
        { maxLength: 8 },
      ),
      (words) => {
        const script = `for word in ${shellWords(words)}; do printf '%s\\0' "$word"; done`;
        const read = words.length === 0 ? '' : execFileSync('sh', ['-c', script], { encoding: 'utf8' });
        expect(read).toBe(words.map((word) => `${word}\0`).join(''));
      },
    ),
    { numRuns: 25 },
  );
});
