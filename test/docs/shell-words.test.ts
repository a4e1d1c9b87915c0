import { expect, test } from 'vitest';
import { simpleCommands } from './shell-words.ts';

test.each<[string, string[][]]>([
  ['a \'b c\' "d" e\\ f # why', [['a', 'b c', 'd', 'e f']]],
  ['A=1 a >x 2>&1 | b && c; d', [['a'], ['b'], ['c'], ['d']]],
  [
    'a $(b c) d',
    [
      ['a', 'substituted', 'd'],
      ['b', 'c'],
    ],
  ],
  ['a <<END\nb\nEND\nc', [['a'], ['c']]],
  ['a \\\n  b', [['a', 'b']]],
  ['sudo timeout 5 a', [['a']]],
  ['a {pool}/x#y', [['a', '{pool}/x#y']]],
])('%j', (script, expected) => {
  expect(simpleCommands(script)).toEqual(expected);
});
