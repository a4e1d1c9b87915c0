import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { warningsOf } from '../../predict/objects/offline-problems.ts';
import { failOnWarnings } from './report-warnings.ts';

const object = (apiVersion: string, kind: string, spec: unknown): KubernetesObject =>
  ({ apiVersion, kind, metadata: { name: 'cluster', labels: {} }, spec }) as KubernetesObject;
const MCO = 'machineconfiguration.openshift.io/v1';

test.each<[string, KubernetesObject, string[]]>([
  [
    'a kind of MCO that Shale does not have',
    object(MCO, 'ControllerConfig', {}),
    [
      'ControllerConfig cluster: has no effect, because Shale does not support machineconfiguration.openshift.io/v1 ControllerConfig',
    ],
  ],
  [
    'settings of all nodes that Shale does not have',
    object('config.openshift.io/v1', 'Node', { workerLatencyProfile: 'MediumUpdateAverageReaction' }),
    [
      'Node cluster of config.openshift.io, spec.workerLatencyProfile: is not supported, and the kubelets report their status as often as before; expected nodeStatusUpdateFrequency in a KubeletConfig, with --node-monitor-grace-period of the kube-controller-manager to match it',
    ],
  ],
  ['kinds that are not for nodes', object('apps/v1', 'Deployment', {}), []],
  ['an Image of somebody else', object('kpack.io/v1alpha2', 'Image', {}), []],
  [
    'a kind of Shale in another version or group',
    object('machineconfig.openshift.io/v1', 'MachineConfig', { kernelArguments: ['a'] }),
    [
      'MachineConfig cluster: has no effect, because Shale does not support machineconfig.openshift.io/v1 MachineConfig; expected machineconfiguration.openshift.io/v1',
    ],
  ],
  [
    'fields beside spec and within metadata',
    {
      apiVersion: MCO,
      kind: 'MachineConfig',
      metadata: { name: 'a', labels: {}, label: { a: 'b' } },
      spec: {},
      kernelArguments: [],
    } as unknown as KubernetesObject,
    [
      'MachineConfig a: kernelArguments: is not a field that Shale knows and has no effect',
      'MachineConfig a: metadata.label: is not a field that Shale knows and has no effect',
    ],
  ],
  [
    'fields that Shale ignores',
    object('operator.openshift.io/v1', 'MachineConfiguration', {
      managedBootImages: { machineManagers: [] },
      nodeDisruptionPolicy: {
        filez: [],
        files: [{ path: '/etc/*.conf', actions: [{ type: 'None', why: 'x' }] }],
      },
    }),
    [
      'MachineConfiguration cluster: spec.nodeDisruptionPolicy.filez: is not a field that Shale knows and has no effect',
      'MachineConfiguration cluster: spec.nodeDisruptionPolicy.files[0].actions[0].why: is not a field that Shale knows and has no effect',
      expect.stringMatching(
        /^MachineConfiguration cluster: spec\.managedBootImages: is not supported, because .*; expected to be omitted/,
      ),
      'MachineConfiguration cluster: spec.nodeDisruptionPolicy.files[0].path: has no wildcards, so it covers only a file that is called "/etc/*.conf"; expected a file, or a directory for every file below it, or a pattern in spec.shale.nodeDisruptionPolicies',
    ],
  ],
  [
    'what is unknown in a MachineConfig and in its Ignition config',
    object(MCO, 'MachineConfig', {
      kernelArgument: ['a'],
      config: {
        ignition: { version: '3.4.0', config: { merge: [{ source: 'https://a.example' }] }, proxy: {} },
        storage: { filez: [] },
      },
    }),
    [
      'MachineConfig cluster: spec.kernelArgument: is not a field that Shale knows and has no effect',
      'MachineConfig cluster: $.storage.filez: is not a field of the spec and has no effect; expected no such key',
      'MachineConfig cluster: $.ignition.config: has no effect: only Ignition reads it, when it provisions a machine; expected no such section; files and units themselves',
    ],
  ],
  [
    'nothing',
    object(MCO, 'MachineConfig', {
      kernelArguments: ['a'],
      config: { ignition: { version: '2.2.0', config: {} }, storage: { files: [] } },
    }),
    [],
  ],
])('warnings of %s', (_name, given, expected) => {
  const cluster = offlineCluster([given]);
  expect(cluster.malformed).toEqual([]);
  expect(warningsOf(cluster)).toEqual(expected);
});

test('warnings of MachineConfigs that only have them together', () => {
  const config = (name: string, unit: object): KubernetesObject => ({
    ...object(MCO, 'MachineConfig', {
      config: { ignition: { version: '3.4.0' }, systemd: { units: [unit] } },
    }),
    metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  });
  const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
  const cluster = offlineCluster([
    config('10-text', { name: 'job@.service', contents }),
    config('20-enabled', { name: 'job@.service', enabled: true }),
  ]);
  expect(warningsOf(cluster)).toEqual([
    expect.stringMatching(
      /^MachineConfig 20-enabled: .*enabling does nothing without an instance, because the template job@\.service has no DefaultInstance= \(also in 10-text\)/,
    ),
  ]);
});

test('with --strict a command fails if there are warnings', () => {
  expect(() => failOnWarnings(['a', 'b'])).toThrow('--strict: 2 warnings');
  expect(() => failOnWarnings([])).not.toThrow();
});
