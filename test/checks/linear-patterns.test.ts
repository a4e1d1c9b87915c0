import path from 'node:path';
import { expect, test } from 'vitest';
import { nonLinearPatterns, patternsOf, whyNotLinear } from './linear-patterns.ts';

test('no regular expression of the product takes more than linear time', () => {
  expect(nonLinearPatterns(path.join(import.meta.dirname, '../..'))).toEqual([]);
});

test.each([
  [/=+$/, 'quadratic'],
  [/[\w.-]*(?:password)\s*[:=]/, 'quadratic'],
  [/^\s*(.*?)\s*$/, 'quadratic'],
  [/^(?:a+)+$/, 'exponential'],
  [/@[^@]*$/, undefined],
  [/:\/\/[^\s/@]+@/g, undefined],
])('%s', (pattern, time) => {
  const why = whyNotLinear(pattern);
  if (time === undefined) expect(why).toBeUndefined();
  else expect(why).toContain(time);
});

test('patterns that a file makes of its constants are found', () => {
  const text = `const A = "a+";
const B = \`(?:\${A})\`;
export const found = [/x/g, new RegExp(\`^\${B}*$\`, "u"), new RegExp(String.raw\`\\d\` + A)];
export const lost = (c: string) => new RegExp(c);`;
  expect(patternsOf('a.ts', text)).toEqual({
    known: [
      { file: 'a.ts', line: 3, source: 'x', flags: 'g' },
      { file: 'a.ts', line: 3, source: '^(?:a+)*$', flags: 'u' },
      { file: 'a.ts', line: 3, source: '\\da+', flags: '' },
    ],
    unknown: ['a.ts'],
  });
});
