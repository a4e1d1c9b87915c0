import { expect, test } from 'vitest';
import type { KubeletConfigSpec } from '../../api/kubelet-config.ts';
import { formatProblem } from '../problem.ts';
import { isLiveField, kubeletConfiguration } from './kubelet-fields.ts';
import { kubeletDropIns, kubeletFiles } from './kubelet-files.ts';

const fieldsIn = (spec: KubeletConfigSpec, path: string) => {
  const file = kubeletFiles(spec).files.find((each) => each.path === path);
  return file === undefined ? undefined : (JSON.parse(file.text) as Record<string, unknown>);
};
const HEAD = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

test('fields that a restart applies while pods run have a drop-in of their own', () => {
  const spec = { kubeletConfig: { maxPods: 100, containerLogMaxFiles: 3, systemReserved: { cpu: '1' } } };
  expect(fieldsIn(spec, kubeletDropIns.live)).toEqual({ ...HEAD, containerLogMaxFiles: 3 });
  expect(fieldsIn(spec, kubeletDropIns.atBoot)).toEqual({
    ...HEAD,
    maxPods: 100,
    systemReserved: { cpu: '1' },
  });
});

test('the same fields in another order are the same bytes', () => {
  const a = kubeletFiles({
    kubeletConfig: { maxPods: 1, evictionHard: { 'pid.available': '5%', 'memory.available': '1Gi' } },
  });
  const b = kubeletFiles({
    kubeletConfig: { evictionHard: { 'memory.available': '1Gi', 'pid.available': '5%' }, maxPods: 1 },
  });
  expect(a.files).toEqual(b.files);
});

test('what the managers of CPUs and memory keep is removed at boot, and only where a reboot applies the change', () => {
  const paths = (kubeletConfig: Record<string, unknown>) =>
    kubeletFiles({ kubeletConfig }).files.map(({ path }) => path);
  expect(paths({ cpuManagerPolicy: 'static' })).toContain('/etc/tmpfiles.d/98-kubelet-managers.conf');
  expect(paths({ eventBurst: 1 })).toEqual([kubeletDropIns.live]);
  const [, state] = kubeletFiles({ kubeletConfig: { cpuManagerPolicy: 'static' } }).files;
  // "!": never while pods run.
  expect(state?.text).toBe(
    'r! /var/lib/kubelet/cpu_manager_state\nr! /var/lib/kubelet/memory_manager_state\n',
  );
});

test.each([
  // A restarting kubelet admits its pods again: what shrinks the node may reject them.
  'maxPods',
  'systemReserved',
  'kubeReserved',
  'evictionHard',
  'evictionSoft',
  'cpuManagerPolicy',
  'memoryManagerPolicy',
  'topologyManagerPolicy',
  'reservedSystemCPUs',
  'podPidsLimit',
  'enforceNodeAllocatable',
  // A node that reports too seldom is taken for lost.
  'nodeStatusUpdateFrequency',
  'nodeStatusReportFrequency',
  'nodeLeaseDurationSeconds',
  // The cluster may not reach the kubelet any more.
  'port',
  'authentication',
  'authorization',
  'tlsCertFile',
  'rotateCertificates',
  // Whether the kubelet starts depends on its version or its feature gates.
  'showHiddenMetricsForVersion',
  'enableSystemLogQuery',
])('%s is not applied while pods run', (name) => {
  expect([Object.hasOwn(kubeletConfiguration.shape, name), isLiveField(name)]).toEqual([true, false]);
});

test('a field that this version does not know reaches the kubelet, and is not applied while pods run', () => {
  const spec = { kubeletConfig: { featureOfTomorrow: true } };
  expect(fieldsIn(spec, kubeletDropIns.atBoot)).toMatchObject({ featureOfTomorrow: true });
  expect(kubeletFiles(spec).warnings.map(formatProblem)).toEqual([
    expect.stringContaining('featureOfTomorrow'),
  ]);
});

test.each<[Record<string, unknown>, string[]]>([
  [
    { logging: { verbossity: 5, vmodule: [{ filePattern: 'a', level: 1 }] } },
    ['logging.verbossity', 'logging.vmodule[0].level'],
  ],
  [
    { registerWithTaints: [{ key: 'a', effect: 'NoSchedule', reason: 'b' }] },
    ['registerWithTaints[0].reason'],
  ],
])('%j is taken, with warnings about %j', (kubeletConfig, expected) => {
  const { warnings, files } = kubeletFiles({ kubeletConfig });
  expect(warnings.map(({ path }) => path)).toEqual(expected.map((field) => `spec.kubeletConfig.${field}`));
  expect(files).not.toEqual([]);
});

test('the log level is the verbosity of the configuration', () => {
  const spec = { logLevel: 5, kubeletConfig: { logging: { format: 'json' } } };
  expect(fieldsIn(spec, kubeletDropIns.live)).toEqual({ ...HEAD, logging: { format: 'json', verbosity: 5 } });
  const twice = kubeletFiles({ logLevel: 5, kubeletConfig: { logging: { verbosity: 2 } } });
  expect(twice.problems.map(({ path }) => path)).toEqual(['spec.logLevel']);
});

test.each<[KubeletConfigSpec, string, number]>([
  [{ tlsSecurityProfile: { type: 'Old' } }, 'VersionTLS10', 21],
  [{ tlsSecurityProfile: { type: 'Intermediate' } }, 'VersionTLS12', 9],
  [{ tlsSecurityProfile: {} }, 'VersionTLS12', 9],
  [{ tlsSecurityProfile: { type: 'Modern' } }, 'VersionTLS13', 3],
  [
    {
      tlsSecurityProfile: {
        type: 'Custom',
        custom: { minTLSVersion: 'VersionTLS12', ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'] },
      },
    },
    'VersionTLS12',
    1,
  ],
  [
    { tlsSecurityProfile: { type: 'Intermediate' }, kubeletConfig: { tlsMinVersion: 'VersionTLS13' } },
    'VersionTLS13',
    9,
  ],
])('%j', (spec, tlsMinVersion, suites) => {
  const fields = fieldsIn(spec, kubeletDropIns.live);
  expect(fields?.['tlsMinVersion']).toBe(tlsMinVersion);
  expect(fields?.['tlsCipherSuites']).toHaveLength(suites);
  expect(fields?.['tlsCipherSuites']).toSatisfy((names: string[]) =>
    names.every((name) => name.startsWith('TLS_')),
  );
});

test.each<[KubeletConfigSpec, string[]]>([
  [{ autoSizingReserved: true }, ['spec.autoSizingReserved']],
  [{ autoSizingReserved: false }, []],
  [{ systemGomaxprocsBehavior: 'Autosize' }, ['spec.systemGomaxprocsBehavior']],
  [{ systemGomaxprocsBehavior: 'Disabled' }, []],
  [
    {
      tlsSecurityProfile: {
        type: 'Custom',
        custom: {
          minTLSVersion: 'VersionTLS12',
          ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'],
          groups: ['X25519'],
        },
      },
    },
    ['spec.tlsSecurityProfile.custom.groups'],
  ],
  [
    { tlsSecurityProfile: { type: 'Custom', custom: null } },
    ['spec.tlsSecurityProfile.custom.ciphers', 'spec.tlsSecurityProfile.custom.minTLSVersion'],
  ],
  [
    {
      tlsSecurityProfile: {
        type: 'Custom',
        custom: { minTLSVersion: 'VersionTLS12', ciphers: ['AES256-SHA256'] },
      },
    },
    ['spec.tlsSecurityProfile.custom.ciphers'],
  ],
  [{ logLevel: 5, kubeletConfig: { logging: 'json' } }, ['spec.kubeletConfig.logging']],
])('%j has problems at %j, and then no file', (spec, expected) => {
  const { problems, files } = kubeletFiles({ ...spec });
  expect(problems.map(({ path }) => path)).toEqual(expected);
  expect(files).toEqual([]);
});
