import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { formatObjectProblem, offlineCluster } from './offline-cluster.ts';
import { problemsOf, renderingProblems, warningsOf } from './offline-problems.ts';

const MCO = 'machineconfiguration.openshift.io/v1';
const CONFIG = 'config.openshift.io/v1';
const object = (apiVersion: string, kind: string, name: string, spec?: unknown): KubernetesObject =>
  ({ apiVersion, kind, metadata: { name }, spec }) as KubernetesObject;
const image = (registrySources: object) => object(CONFIG, 'Image', 'cluster', { registrySources });
const config = (name: string, spec: object, metadata: object = {}): KubernetesObject => ({
  ...object(MCO, 'MachineConfig', name, spec),
  metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' }, ...metadata },
});
const digest = `sha256:${'0'.repeat(64)}`;

test.each<[string, KubernetesObject[], string[]]>([
  [
    'registries that a cluster refuses',
    [image({ insecureRegistries: ['*.x:5000'] })],
    [
      'Image cluster: spec.registrySources.insecureRegistries[0]: is "*.x:5000"; expected host[:port][/repository], or *.domain',
    ],
  ],
  [
    'a mirror that can not be written to registries.conf',
    [
      object('operator.openshift.io/v1alpha1', 'ImageContentSourcePolicy', 'a', {
        repositoryDigestMirrors: [{ source: '*.x:5000', mirrors: ['b.example.org'] }],
      }),
    ],
    [expect.stringMatching(/^ImageContentSourcePolicy a: "\*\.x:5000" is no registry or repository/)],
  ],
  [
    'mirror objects that contradict each other',
    ['AllowContactingSource', 'NeverContactSource'].map((mirrorSourcePolicy) =>
      object(CONFIG, 'ImageDigestMirrorSet', mirrorSourcePolicy.toLowerCase(), {
        imageDigestMirrors: [{ source: 'a.example.org', mirrors: ['b.example.org'], mirrorSourcePolicy }],
      }),
    ),
    [expect.stringContaining('is NeverContactSource while ImageDigestMirrorSet allowcontactingsource')],
  ],
  [
    'a mirror with a tag',
    [
      object(CONFIG, 'ImageTagMirrorSet', 'a', {
        imageTagMirrors: [{ source: 'a.example.org/b', mirrors: ['b.example.org/b:1'] }],
      }),
    ],
    [
      'ImageTagMirrorSet a: spec.imageTagMirrors[0].mirrors[0]: is "b.example.org/b:1"; expected host[:port][/repository]',
    ],
  ],
  [
    'an image by tag',
    [object(MCO, 'PinnedImageSet', 'a', { pinnedImages: [{ name: 'a.example.org/b:1' }] })],
    [
      'PinnedImageSet a: spec.pinnedImages[0].name: is "a.example.org/b:1"; expected an image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>',
    ],
  ],
  [
    'fields of another type, and too few items',
    [object(MCO, 'PinnedImageSet', 'a', { pinnedImages: [] }), config('50-a', { kernelArguments: 'a' })],
    [
      'PinnedImageSet a: spec.pinnedImages: is a list of 0; expected it to have >=1 items',
      'MachineConfig 50-a: spec.kernelArguments: is "a"; expected array',
    ],
  ],
  [
    'a required field that is missing',
    [object(MCO, 'MachineOSConfig', 'a', { machineConfigPool: { name: 'a' } })],
    [expect.stringMatching(/^MachineOSConfig a: spec\.renderedImagePushSpec: is missing; expected string/)],
  ],
  [
    'a MachineOSConfig that has another name than its pool',
    [
      object(MCO, 'MachineOSConfig', 'a', {
        machineConfigPool: { name: 'worker' },
        renderedImagePushSpec: 'r.example.org/os/worker:1',
      }),
    ],
    ['MachineOSConfig a: metadata.name: is "a"; expected the name of its pool, "worker"'],
  ],
  [
    'names that a cluster refuses',
    [
      object(CONFIG, 'Image', 'other', {}),
      object('operator.openshift.io/v1', 'MachineConfiguration', 'other', {}),
      config('50_a', {}),
    ],
    [
      'Image other: metadata.name: is "other"; expected cluster, the only name that has an effect',
      'MachineConfiguration other: metadata.name: is "other"; expected cluster, the only name that has an effect',
      'MachineConfig 50_a: metadata.name: is "50_a"; expected an object\'s name: lowercase letters, digits, - and .',
    ],
  ],
  [
    'kinds that do not exist, with the nearest one',
    [
      object(MCO, 'MachinConfig', '50-a', {}),
      object(MCO, 'machineconfigpool', 'worker', {}),
      object('operator.openshift.io/v1', 'MachineConfigurations', 'cluster', {}),
      object(CONFIG, 'ImageDigestMirorSet', 'a', {}),
      object('shale.dev/v1', 'Poolrevison', 'a', {}),
    ],
    [
      `MachinConfig 50-a: kind: is unknown in ${MCO}; expected MachineConfig of ${MCO}`,
      `machineconfigpool worker: kind: is unknown in ${MCO}; expected MachineConfigPool of ${MCO}`,
      'MachineConfigurations cluster: kind: is unknown in operator.openshift.io/v1; expected MachineConfiguration of operator.openshift.io/v1',
      `ImageDigestMirorSet a: kind: is unknown in ${CONFIG}; expected ImageDigestMirrorSet of ${CONFIG}`,
      'Poolrevison a: kind: is unknown in shale.dev/v1; expected PoolRevision of shale.dev/v1',
    ],
  ],
  [
    'kinds in another version or group than their own',
    [
      object('machineconfiguration.openshift.io/v2', 'MachineConfig', '50-a', {}),
      object('machineconfiguration.openshift.io/v1alpha1', 'MachineOSConfig', 'worker', {}),
      object(MCO, 'MachineConfiguration', 'cluster', {}),
      object('operator.openshift.io/v1', 'ImageContentSourcePolicy', 'a', {}),
    ],
    [
      `MachineConfig 50-a: kind: is unknown in machineconfiguration.openshift.io/v2; expected MachineConfig of ${MCO}`,
      `MachineOSConfig worker: kind: is unknown in machineconfiguration.openshift.io/v1alpha1; expected MachineOSConfig of ${MCO}`,
      `MachineConfiguration cluster: kind: is unknown in ${MCO}; expected MachineConfiguration of operator.openshift.io/v1`,
      'ImageContentSourcePolicy a: kind: is unknown in operator.openshift.io/v1; expected ImageContentSourcePolicy of operator.openshift.io/v1alpha1',
    ],
  ],
  [
    'a kind that is near none, in a group that has no others',
    [object('shale.dev/v1', 'Deployment', 'a', {})],
    ['Deployment a: kind: is unknown in shale.dev/v1; expected PoolRevision'],
  ],
  [
    'nothing, of kinds of others',
    [
      object('apps/v1', 'Deployment', 'a', {}),
      object('kpack.io/v1alpha2', 'Image', 'a', {}),
      object(MCO, 'ControllerConfig', 'a', {}),
      object('machineconfiguration.openshift.io/v1alpha1', 'OSImageStream', 'cluster', {}),
      object(CONFIG, 'ImageContentPolicy', 'a', {}),
      object(CONFIG, 'Node', 'cluster', {}),
      object('operator.openshift.io/v1', 'Storage', 'cluster', {}),
    ],
    [],
  ],
  [
    'an annotation that YAML reads as a boolean',
    [config('50-a', {}, { annotations: { a: true } })],
    ['MachineConfig 50-a: metadata.annotations: expected strings by name'],
  ],
])('problems of %s', (_name, objects, expected) => {
  expect(problemsOf(offlineCluster(objects)).map(formatObjectProblem)).toEqual(expected);
});

test('objects of another group or version are not taken for those of Shale', () => {
  const cluster = offlineCluster([
    aPool('worker'),
    { ...config('50-a', { kernelArguments: ['a'] }), apiVersion: 'machineconfiguration.openshift.io/v2' },
    { ...image({ blockedRegistries: ['a.example.org'] }), apiVersion: 'kpack.io/v1alpha2' },
    { ...object(CONFIG, 'Node', 'cluster', {}), metadata: { name: 'cluster' } },
  ]);
  expect(cluster).toMatchObject({ configs: [], nodes: [], mirrors: { image: undefined } });
});

test('a live cluster may have objects of other names, where OpenShift defines the kinds', () => {
  const cluster = offlineCluster([object(CONFIG, 'Image', 'other', { registrySources: {} })], {
    isLive: true,
  });
  expect([problemsOf(cluster), cluster.mirrors.image]).toEqual([[], undefined]);
});

test('problems that only a rendering has name the pool', () => {
  const cluster = offlineCluster([
    config('50-a', { kernelType: 'realtime' }),
    config('60-b', { extensions: ['kernel-devel'] }),
  ]);
  expect(problemsOf(cluster)).toEqual([]);
  expect(renderingProblems(cluster)).toEqual([expect.stringMatching(/^pool worker: .*kernel-devel/)]);
});

test('a pool in a file, as the operator left it, need not have its MachineConfigs there', () => {
  const pool = aPool('worker');
  const written = { ...pool, spec: { ...pool.spec, configuration: { name: 'rendered-worker-1' } } };
  expect(renderingProblems(offlineCluster([written]))).toEqual([]);
  expect(renderingProblems(offlineCluster([written], { isLive: true }), { isLive: true })).toEqual([
    expect.stringMatching(/^pool worker: .*machineConfigSelector/),
  ]);
});

test('policies that select no pool, where pools are known, and a state that Shale refuses', () => {
  const nodeDisruptionPolicies = [{ name: 'edge', poolSelector: { matchLabels: { tier: 'edge' } } }];
  const configuration = object('operator.openshift.io/v1', 'MachineConfiguration', 'cluster', {
    managementState: 'Removed',
    shale: { nodeDisruptionPolicies },
  });
  const refused = expect.stringMatching(/^MachineConfiguration cluster: .* is Removed, which Shale refuses/);
  expect(warningsOf(offlineCluster([configuration, config('50-a', {})]))).toEqual([refused]);
  expect(warningsOf(offlineCluster([configuration, aPool('worker')]))).toEqual([
    refused,
    'MachineConfiguration cluster: spec.shale.nodeDisruptionPolicies: edge selects no MachineConfigPool',
  ]);
});

test('sets of pinned images that no pool has, and pools whose sets are missing', () => {
  const pinnedImages = [{ name: `a.example.org/b@${digest}` }];
  const pool = {
    ...aPool('worker'),
    spec: { ...aPool('worker').spec, pinnedImageSets: [{ name: 'missing' }] },
  };
  const cluster = offlineCluster([pool, object(MCO, 'PinnedImageSet', 'unused', { pinnedImages })]);
  expect(warningsOf(cluster)).toEqual([
    'PinnedImageSet unused: no MachineConfigPool selects or names it',
    'MachineConfigPool worker: spec.pinnedImageSets: PinnedImageSet missing does not exist',
  ]);
});

test.each<[string, string, object | undefined, string[]]>([
  ['by digest in the repository of the pool', `r.io/os/worker@sha256:${'a'.repeat(64)}`, undefined, []],
  [
    'by tag',
    'r.io/os/worker:1',
    undefined,
    [
      `MachineOSConfig worker: metadata.annotations: machineconfiguration.openshift.io/pre-built-image: is "r.io/os/worker:1"; expected an image by digest in the pool's repository, r.io/os/worker@sha256:<64 hexadecimal digits>`,
    ],
  ],
  [
    'by tag, where the pool has an image',
    'r.io/os/worker:1',
    { currentImagePullSpec: 'r.io/os/worker@x' },
    [],
  ],
])('an image made beforehand %s', (_, image, status, problems) => {
  const given = object(MCO, 'MachineOSConfig', 'worker', {
    machineConfigPool: { name: 'worker' },
    renderedImagePushSpec: 'r.io/os/worker:latest',
  });
  const annotations = { 'machineconfiguration.openshift.io/pre-built-image': image };
  const cluster = offlineCluster([
    Object.assign(given, { metadata: { ...given.metadata, annotations }, status }),
  ]);
  expect(problemsOf(cluster).map(formatObjectProblem)).toEqual(problems);
  expect(warningsOf(cluster)).toEqual([]);
});
