import { expect, test } from 'vitest';
import { daemonCommand } from './main.ts';

function options(...args: readonly string[]): Record<string, unknown> {
  const command = daemonCommand()
    .action(() => undefined)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse(['--node-name=worker-1', ...args], { from: 'user' });
  return command.opts();
}

test('the defaults are those that the reference documents', () => {
  expect(options()).toMatchObject({
    nodeName: 'worker-1',
    leaseNamespace: 'medik8s-leases',
    hostRoot: '/',
    hostInit: 1,
    insecureRegistry: [],
    pinnedImagesReserve: 16 * 1024,
    metricsPort: 0,
    logLevel: 'info',
  });
  expect(options()).not.toHaveProperty('osBackend');
  expect(options()).not.toHaveProperty('kubeconfig');
});

test('flags are read, those that can be repeated all of them', () => {
  expect(
    options(
      ...['--insecure-registry=a:1', '--insecure-registry=b:2', '--os-backend=bootc', '--host-init=7'],
      ...['--pinned-images-reserve=0', '--metrics-port=65535', '--host-root=/host'],
    ),
  ).toMatchObject({
    insecureRegistry: ['a:1', 'b:2'],
    osBackend: 'bootc',
    hostInit: 7,
    pinnedImagesReserve: 0,
    metricsPort: 65_535,
    hostRoot: '/host',
  });
});

test.each([
  '--host-init=0',
  '--pinned-images-reserve=-1',
  '--metrics-port=65536',
  '--metrics-port=-1',
  '--os-backend=apt',
])('%s is refused', (flag) => {
  expect(() => options(flag)).toThrow(/is invalid/);
});
