import { Command } from 'commander';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { builderCommand } from '../builder/main.ts';
import { limitsInMiB } from '../machineconfig/rendered-annotations.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { builderArguments } from './builder-flags.ts';
import {
  monitoringOf,
  movedFlags,
  type OperatorFlags,
  receiverOf,
  rolloutOptions,
  withOperatorFlags,
} from './flags.ts';

const noEngine = {
  engine: 'none',
  engineImage: '',
  engineDisk: '',
  engineMemory: '',
  engineMemoryLimit: '',
  engineHostUsers: false,
};

test.each([
  [
    { insecureRegistry: [], attest: true, builderMetricsPort: 0, signingKeySecret: 'signing' },
    ['--signing-key-secret', 'signing'],
  ],
  [
    {
      insecureRegistry: [],
      attest: true,
      builderMetricsPort: 0,
      signingKeySecret: 'signing',
      engine: 'unix:///e.sock',
    },
    ['--signing-key-secret', 'signing', '--engine', 'unix:///e.sock'],
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
])('the flags %j reach the builder as arguments that it has', (flags, expected) => {
  const args = builderArguments({ ...noEngine, ...flags }, 'required', 'shale:1');
  expect(args).toEqual(expected);
  const builder = builderCommand().action(() => undefined);
  builder.parse([...args], { from: 'user' });
  const { builderMetricsPort: metricsPort, ...shared } = flags;
  expect(builder.opts()).toMatchObject({ ...shared, metricsPort });
});

/** Parses a command line of the operator. */
function parsed(args: readonly string[]): OperatorFlags {
  const command = withOperatorFlags(new Command('operator')).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  command.parse([...args], { from: 'user' });
  return command.opts<OperatorFlags>();
}

describe('without flags', () => {
  it('rollouts have the default options', () => {
    const { drain, ...options } = rolloutOptions(parsed([]));
    const { drain: defaultDrain, ...defaults } = defaultRolloutOptions;
    expect(options).toEqual(defaults);
    expect(drain).toEqual(defaultDrain);
  });

  it('nothing listens, engines run in pods of their own, and three images are kept', () => {
    const flags = parsed([]);
    expect(flags).toMatchObject({ metricsPort: 0, builderMetricsPort: 0, keepImages: 3 });
    expect(flags).toMatchObject({ attest: true, insecureRegistry: [], logLevel: 'info' });
    expect(builderArguments(flags, 'disabled', 'shale:1')).toEqual([
      ...['--engine', 'pod', '--engine-image', 'quay.io/podman/stable:v5', '--shale-image', 'shale:1'],
      ...['--engine-disk', '64Gi', '--engine-memory', '1Gi'],
      ...['--engine-memory-limit', '8Gi'],
    ]);
  });
});

test('each flag of rollouts sets its option', () => {
  const args = [
    ...['--namespace', 'n', '--lease-namespace', 'l', '--container-runtime-unit', 'containerd.service'],
    ...[
      '--no-create-machine-configuration',
      '--node-user',
      'admin',
      '--node-name',
      'node-1',
      '--staging-limit',
      '7',
    ],
    ...['--drain-grace-seconds', '0', '--drain-report-minutes', '2', '--hook-report-minutes', '3'],
    ...['--drain-keep-unmanaged', '--drain-keep-empty-dir', '--max-file-mib', '1', '--max-config-mib', '2'],
  ];
  expect(rolloutOptions(parsed(args))).toMatchObject({
    namespace: 'n',
    leases: { namespace: 'l' },
    hosts: { containerRuntimeUnit: 'containerd.service', nodeUser: 'admin' },
    createsMachineConfiguration: false,
    pace: { operatorNode: 'node-1', stagingLimit: 7 },
    rendering: { limits: limitsInMiB({ file: 1, config: 2 }) },
    reports: { hookAfterSeconds: 180 },
    drain: {
      reportAfterSeconds: 120,
      gracePeriodSeconds: 0,
      evictUnmanagedPods: false,
      evictEmptyDirPods: false,
    },
  });
});

test('what is set about engines in pods reaches the builder as arguments that it has', () => {
  const flags = parsed([
    '--engine-image',
    'podman:1',
    '--engine-disk',
    '5Gi',
    '--engine-memory',
    '2Gi',
    '--engine-memory-limit',
    '4Gi',
    '--engine-host-users',
  ]);
  const builder = builderCommand().action(() => undefined);
  builder.parse([...builderArguments(flags, 'disabled', 'shale:1')], { from: 'user' });
  expect(builder.opts()).toMatchObject({
    engine: 'pod',
    engineImage: 'podman:1',
    shaleImage: 'shale:1',
    engineDisk: '5Gi',
    engineMemory: '2Gi',
    engineMemoryLimit: '4Gi',
    engineHostUsers: true,
  });
});

test('a builder without an engine gets no flag of one', () => {
  expect(builderArguments(parsed(['--engine', 'none']), 'disabled', 'shale:1')).toEqual([]);
});

test.each(['podman-sidecar', 'http://engine', 'unix://', ''])('--engine %j is rejected', (engine) => {
  expect(() => parsed(['--engine', engine])).toThrow('Expected pod, none, unix:///path or tcp://host:port');
});

test.each(['pod', 'none', 'unix:///run/podman.sock', 'tcp://engine:2376'])(
  '--engine %s is an engine',
  (engine) => {
    expect(parsed(['--engine', engine]).engine).toBe(engine);
  },
);

test("an engine on TCP reaches the builder with its certificates' directory", () => {
  const flags = parsed(['--engine', 'tcp://e:1', '--engine-tls-dir', '/tls', '--builder-metrics-port', '81']);
  expect(builderArguments(flags, 'disabled', 'shale:1')).toEqual(
    expect.arrayContaining(['--engine', 'tcp://e:1', '--engine-tls-dir', '/tls', '--metrics-port', '81']),
  );
});

test('flags of the page, which the operator had once, are accepted and named', () => {
  expect(movedFlags(parsed([]))).toEqual([]);
  expect(movedFlags(parsed(['--page-port', '0', '--page-tls-dir', '/tls', '--cluster-name', 'a']))).toEqual([
    ...['--page-port', '--page-tls-dir', '--cluster-name'],
  ]);
});

test.each([
  ['--staging-limit', '0', '1'],
  ['--drain-report-minutes', '0', '1'],
  ['--hook-report-minutes', '0', '1'],
  ['--new-node-report-minutes', '0', '1'],
  ['--drain-grace-seconds', '-1', '0'],
  ['--keep-images', '-1', '0'],
  ['--metrics-port', '65536', '65535'],
  ['--builder-metrics-port', '65536', '65535'],
  ['--metrics-port', '-1', '0'],
  ['--builder-metrics-port', '-1', '0'],
  ['--log-level', 'verbose', 'silent'],
  ['--max-file-mib', '0', '1'],
  ['--max-config-mib', '0', '1'],
])('%s %s is rejected, %s is not', (flag, bad, good) => {
  expect(() => parsed([flag, bad])).toThrow(flag);
  expect(() => parsed([flag, good])).not.toThrow();
});

test.each([
  'alertmanager',
  'alertmanager:9093',
  'ftp://alertmanager',
  'http://user:secret@alertmanager',
  'https://alertmanager/?token=secret',
])('--alertmanager-url and --prometheus-url %s are rejected', (url) => {
  const why = 'Expected an http or https URL without credentials';
  for (const flag of ['--alertmanager-url', '--prometheus-url'])
    expect(() => parsed([flag, url])).toThrow(why);
});

test.each(['locks', 'ftp://locks', 'https://user:secret@locks'])('--fleetlock-url %s is rejected', (url) => {
  expect(() => parsed(['--fleetlock-url', 'https://locks', url])).toThrow('--fleetlock-url');
  expect(() => parsed(['--fleetlock-url', 'https://locks', 'http://others:8080'])).not.toThrow();
});

test.each(['s3cret', 'ftp://s3cret', 'https://'])('--notify-url %s is rejected, and not printed', (url) => {
  const receiver = () => receiverOf(parsed(['--notify-url', url]));
  expect(receiver).toThrow(/^--notify-url or SHALE_NOTIFY_URL must be an http or https URL$/);
});

test('where events go may come from the environment, as from a Secret', () => {
  expect(receiverOf(parsed([]))).toBeUndefined();
  vi.stubEnv('SHALE_NOTIFY_URL', 'https://receiver/hook?token=1');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(receiverOf(parsed([]))?.href).toBe('https://receiver/hook?token=1');
  expect(receiverOf(parsed(['--notify-url', 'http://other/']))?.href).toBe('http://other/');
});

test.each([
  [[], {}],
  [['--alertmanager-url', 'https://alertmanager.monitoring:9093/'], { askAlerts: expect.any(Function) }],
  [['--prometheus-url', 'https://prometheus.monitoring:9090/'], { askQueries: expect.any(Function) }],
])('with %j alerts and queries are asked for where there is a URL', (flags, monitoring) => {
  expect(monitoringOf(parsed(flags))).toEqual(monitoring);
});

test('the builder gets no key when signing is disabled', () => {
  const flags = { insecureRegistry: [], attest: true, builderMetricsPort: 0, signingKeySecret: 'signing' };
  expect(builderArguments({ ...noEngine, ...flags }, 'disabled', 'shale:1')).toEqual([]);
});

test("the builder's pod is set by an object, and what it can't have is rejected", () => {
  const pod = { resources: { limits: { memory: '1Gi' } }, nodeSelector: { disk: 'fast' } };
  expect(parsed(['--builder-pod', JSON.stringify(pod)]).builderPod).toEqual(pod);
  expect(parsed(['--builder-pod', '{"resources":{},"tolerations":[]}']).builderPod).toEqual({});
  expect(() => parsed(['--builder-pod', '{'])).toThrow(/ is invalid\. must be a JSON object/);
  expect(() => parsed(['--builder-pod', '{"resources":{"requests":{"memory":1}}}'])).toThrow(
    'resources.requests.memory: Invalid input: expected string',
  );
  expect(() => parsed(['--builder-pod', '{"hostPID":true}'])).toThrow('hostPID');
});
