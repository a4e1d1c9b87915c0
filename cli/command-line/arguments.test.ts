import { expect, test } from 'vitest';
import { argumentsOf } from './arguments.ts';

const KNOWN = ['plan', 'image'];

test.each([
  [
    ['plan', '-f', 'x'],
    ['plan', '-f', 'x'],
  ],
  [['help'], ['help']],
  [
    ['help', '--help'],
    ['help', '--help'],
  ],
  [
    ['help', 'plan'],
    ['plan', '--help'],
  ],
  [
    ['help', 'image', 'inspect'],
    ['image', 'inspect', '--help'],
  ],
  [[], []],
])('the arguments %j are read as %j', (given, read) => {
  expect(argumentsOf(given, KNOWN)).toEqual(read);
});

test('help for a command that does not exist is a mistake of usage', () => {
  expect(() => argumentsOf(['help', 'plna'], KNOWN)).toThrow('no command is named plna');
});
