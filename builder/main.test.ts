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
    logFormat: 'rfc3339',
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

test('a builder that can not reach its cluster fails', async () => {
  const command = builderCommand().exitOverride();
  const args = ['--kubeconfig', '/nowhere/kubeconfig', '--log-level', 'silent'];
  const signals = ['SIGTERM', 'SIGINT'] as const;
  const before = signals.map((name) => process.listeners(name));
  try {
    await expect(command.parseAsync(args, { from: 'user' })).rejects.toThrow('ENOENT');
  } finally {
    for (const [index, name] of signals.entries())
      for (const listener of process.listeners(name))
        if (before[index]?.includes(listener) === false) process.off(name, listener);
  }
});
