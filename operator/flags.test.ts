import { expect, test } from 'vitest';
import { builderCommand } from '../builder/main.ts';
import { builderArguments } from './flags.ts';

test.each([
  [{ insecureRegistry: [], attest: true, builderMetricsPort: 0 }, []],
  [
    { insecureRegistry: [], attest: true, builderMetricsPort: 0, engine: 'unix:///e.sock' },
    ['--engine', 'unix:///e.sock'],
  ],
  [
    {
      insecureRegistry: ['a:1', 'b:2'],
      attest: false,
      signingKeySecret: 'signing',
      builderMetricsPort: 8080,
    },
    [
      '--insecure-registry',
      'a:1',
      'b:2',
      '--no-attest',
      '--signing-key-secret',
      'signing',
      '--metrics-port',
      '8080',
    ],
  ],
])('what the operator was told %j reaches the builder in words it knows', (flags, expected) => {
  const args = builderArguments(flags);
  expect(args).toEqual(expected);
  const builder = builderCommand().action(() => undefined);
  builder.parse([...args], { from: 'user' });
  const { builderMetricsPort: metricsPort, ...shared } = flags;
  expect(builder.opts()).toMatchObject({ ...shared, metricsPort });
});
