import { expect, test } from 'vitest';
import { builderCommand } from './main.ts';

function options(...args: string[]): Record<string, unknown> {
  const command = builderCommand()
    .action(() => undefined)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse(args, { from: 'user' });
  return command.opts();
}

test('the defaults are those that the reference documents', () => {
  expect(options()).toMatchObject({
    insecureRegistry: [],
    baseCheckMinutes: 15,
    metricsPort: 0,
    parallel: 8,
    parallelEngine: 2,
    attest: true,
    logLevel: 'info',
    engineMinutes: 60,
  });
  expect(options()).not.toHaveProperty('signingKeySecret');
  expect(options()).not.toHaveProperty('engine');
});

test('flags are read', () => {
  expect(
    options(
      ...['--namespace', 'ns', '--insecure-registry', 'a:1', 'b:2', '--architecture', 'arm64', '--no-attest'],
      ...[
        '--base-check-minutes',
        '1',
        '--metrics-port',
        '65535',
        '--parallel',
        '1',
        '--parallel-engine',
        '1',
      ],
      ...['--signing-key-secret', 'signing', '--engine', 'unix:///x', '--engine-minutes', '1'],
    ),
  ).toMatchObject({
    namespace: 'ns',
    insecureRegistry: ['a:1', 'b:2'],
    architecture: 'arm64',
    attest: false,
    baseCheckMinutes: 1,
    metricsPort: 65_535,
    parallel: 1,
    parallelEngine: 1,
    signingKeySecret: 'signing',
    engine: 'unix:///x',
    engineMinutes: 1,
  });
});

test.each([
  ['--base-check-minutes', '0'],
  ['--parallel', '0'],
  ['--parallel-engine', '0'],
  ['--engine-minutes', '0'],
  ['--metrics-port', '65536'],
  ['--metrics-port', '-1'],
  ['--parallel', 'many'],
])('%s %s is refused', (flag, value) => {
  expect(() => options(`${flag}=${value}`)).toThrow();
});
