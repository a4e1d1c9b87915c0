import { expect, test } from 'vitest';
import { agrees, stepsOf } from './console.ts';

const block = (language: string, text: string) => ({ language, words: [], text, line: 10 });

test('a console block is commands, each with its output', () => {
  const text = '$ a --b \\\n    c\nx\ny\n\n$ cat <<END\n$ no command\nEND\n';
  expect(stepsOf(block('console', text))).toEqual([
    { command: 'a --b \\\n    c', output: ['x', 'y'], line: 11 },
    { command: 'cat <<END\n$ no command\nEND', output: [], line: 16 },
  ]);
});

test('an sh block is commands alone', () => {
  expect(stepsOf(block('sh', '# why\na\n\nb | c\n')).map(({ command }) => command)).toEqual(['a', 'b | c']);
});

test('output before any command is a mistake', () => {
  expect(() => stepsOf(block('console', 'x\n'))).toThrow('line 11');
});

test.each([
  [['a  b'], 'a     b\n', true],
  [['a … c'], 'a b b c\n', true],
  [['a', '…', 'z'], 'a\nb\nc\nz\n', true],
  [['a', '…', 'z'], 'a\nz\n', true],
  [['a'], 'a\nb\n', false],
  [['a.c'], 'abc\n', false],
  [['a', 'b'], 'a\n', false],
])('%j agrees with %j: %s', (shown, real, expected) => {
  expect(agrees(shown, real)).toBe(expected);
});
