import { expect, test } from 'vitest';
import { builderCommand } from '../../builder/command.ts';
import { builderArguments } from './command.ts';

test.each([
  [{ insecureRegistry: [], attest: true }, []],
  [{ insecureRegistry: [], attest: true, engine: 'unix:///e.sock' }, ['--engine', 'unix:///e.sock']],
  [
    { insecureRegistry: ['a:1', 'b:2'], attest: false, signingKeySecret: 'signing' },
    ['--insecure-registry', 'a:1', 'b:2', '--no-attest', '--signing-key-secret', 'signing'],
  ],
])('what the operator was told %j reaches the builder in words it knows', (flags, expected) => {
  const args = builderArguments(flags);
  expect(args).toEqual(expected);
  const builder = builderCommand().action(() => undefined);
  builder.parse([...args], { from: 'user' });
  expect(builder.opts()).toMatchObject(flags);
});
