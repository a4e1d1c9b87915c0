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
  [
    ['--context', 'x', 'plan', '-f', 'y'],
    ['plan', '-f', 'y', '--context', 'x'],
  ],
  [
    ['--kubeconfig=k', '-n', 'ns', 'image', 'inspect', 'i'],
    ['image', 'inspect', 'i', '--kubeconfig=k', '-n', 'ns'],
  ],
  [
    ['--namespace', 'ns', 'image', '--', 'i'],
    ['image', '--namespace', 'ns', '--', 'i'],
  ],
  [
    ['--context', 'x', 'help', 'plan'],
    ['plan', '--help', '--context', 'x'],
  ],
  [
    ['--context', 'x'],
    ['--context', 'x'],
  ],
  [
    ['--as', 'jane', '--as-group=ops', '--request-timeout', '5s', 'plan'],
    ['plan', '--as', 'jane', '--as-group=ops', '--request-timeout', '5s'],
  ],
  [['--context'], ['--context']],
  [
    ['--version', 'plan'],
    ['--version', 'plan'],
  ],
])('the arguments %j are read as %j', (given, read) => {
  expect(argumentsOf(given, KNOWN)).toEqual(read);
});

test('help for a command that does not exist is a mistake of usage', () => {
  expect(() => argumentsOf(['help', 'plna'], KNOWN)).toThrow('no command is named plna');
});
