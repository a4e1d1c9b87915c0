import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { aNode, aPool } from '../../test/fixtures/objects.ts';
import { changedCluster, formatObjectProblem, offlineCluster } from './offline-cluster.ts';
import { problemsOf, warningsOf } from './offline-problems.ts';
import { renderOffline } from './offline-rendering.ts';

const MCO = 'machineconfiguration.openshift.io/v1';
const pool = { ...aPool('worker'), metadata: { name: 'worker', labels: { tune: 'yes' } } };
const motd = {
  apiVersion: MCO,
  kind: 'MachineConfig',
  metadata: { name: '50-motd', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  spec: { config: { ignition: { version: '3.5.0' } } },
} as KubernetesObject;
const object = (kind: string, spec: object): KubernetesObject =>
  ({
    apiVersion: MCO,
    kind,
    metadata: { name: 'a', uid: 'u' },
    spec: { machineConfigPoolSelector: { matchLabels: { tune: 'yes' } }, ...spec },
  }) as KubernetesObject;
const kubelet = (kubeletConfig: object) => object('KubeletConfig', { kubeletConfig });
const runtime = (containerRuntimeConfig: object) =>
  object('ContainerRuntimeConfig', { containerRuntimeConfig });
const node = aNode('n', {
  metadata: { name: 'n', labels: { 'node-role.kubernetes.io/worker': '' } },
  status: { nodeInfo: { containerRuntimeVersion: 'cri-o://1.34.1' } },
});

function rendered(...objects: KubernetesObject[]) {
  const cluster = offlineCluster([pool, motd, ...objects]);
  const rendering = renderOffline(cluster, pool);
  const files = rendering.ok ? [...rendering.config.files.keys()] : rendering.problems;
  return {
    files,
    problems: problemsOf(cluster).map(formatObjectProblem),
    warnings: warningsOf(cluster),
    malformed: cluster.malformed,
  };
}

test('files show what the operator would render of a KubeletConfig', () => {
  expect(rendered(kubelet({ eventBurst: 5 }))).toEqual({
    files: ['/etc/kubernetes/kubelet.conf.d/98-kubeletconfig-live.conf'],
    problems: [],
    warnings: [],
    malformed: [],
  });
});

test('an invalid object is a problem, and of the pools that it selects no rendering is shown', () => {
  const problem = 'KubeletConfig a: spec.kubeletConfig.maxPods: is "250"; expected an integer of 32 bits';
  expect(rendered(kubelet({ maxPods: '250' }))).toMatchObject({ files: [problem], problems: [problem] });
  // What would take a field out of the host's own file is no setting.
  expect(rendered(kubelet({ maxPods: null }))).toMatchObject({ files: [], problems: [] });
  const containerd = { ...node, status: { nodeInfo: { containerRuntimeVersion: 'containerd://2.1.4' } } };
  expect(rendered(runtime({ pidsLimit: 100 }), containerd).problems).toEqual([
    expect.stringContaining('podPidsLimit in a KubeletConfig'),
  ]);
});

test('what files can’t tell is a warning: the container runtime of nodes, and pools that are not among them', () => {
  const undecided = rendered(runtime({ logLevel: 'debug' }));
  expect(undecided).toMatchObject({ files: [], problems: [] });
  expect(undecided.warnings).toEqual([
    expect.stringMatching(
      /^ContainerRuntimeConfig a: pool worker: no node has reported .*spec\.shale\.containerRuntime/,
    ),
  ]);
  expect(rendered(runtime({ logLevel: 'debug' }), node)).toMatchObject({
    files: ['/etc/crio/crio.conf.d/98-ctrcfg-log-level.conf'],
    warnings: [],
  });
  const nobody = { ...kubelet({ maxPods: 5 }), spec: { kubeletConfig: { maxPods: 5 } } } as KubernetesObject;
  expect(rendered(nobody).warnings).toEqual([expect.stringContaining('selects no MachineConfigPool')]);
});

test('fields that no kubelet knows are warnings', () => {
  expect(rendered(kubelet({ maxPodz: 5 })).warnings).toEqual([expect.stringContaining('maxPodz')]);
});

test('nodes stay when a change is the complete new state', () => {
  const after = changedCluster([pool, motd, node], [motd, runtime({ logLevel: 'debug' })], {
    prune: true,
    limits: offlineCluster([]).limits,
  });
  expect(warningsOf(after)).toEqual([]);
});

test('what is generated from an earlier version counts while the present one can’t be decided', () => {
  const generated = offlineCluster([pool, motd, node, runtime({ logLevel: 'debug' })]).services.flatMap(
    (verdict) => verdict.generated as MachineConfig[],
  );
  expect(generated).toHaveLength(1);
  const files = ['/etc/crio/crio.conf.d/98-ctrcfg-log-level.conf'];
  expect(rendered(runtime({ logLevel: 'debug' }), ...generated).files).toEqual(files);
  expect(rendered(runtime({}), node, ...generated).files).toEqual([]);
  // As the garbage collector does, where the owner is among the objects no more.
  expect(rendered(...generated).files).toEqual(files);
});

test('a pool that names a stream of OS images is rendered with its image, and is a problem without', () => {
  const named = { ...pool, spec: { ...pool.spec, osImageStream: { name: 'next' } } };
  const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
  const streams = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'os-image-streams', namespace: 'shale-system' },
    data: { next: image },
  };
  const cluster = offlineCluster([named, motd, streams]);
  expect(problemsOf(cluster)).toEqual([]);
  expect(renderOffline(cluster, named)).toMatchObject({
    ok: true,
    rendered: { spec: { osImageURL: image } },
  });
  // A repository of MachineConfigs has no such ConfigMap: the cluster's stays.
  const after = changedCluster([named, motd, streams], [named, motd], { prune: true });
  expect(renderOffline(after, named).ok).toBe(true);
  const without = offlineCluster([named, motd]);
  const problem =
    'pool/worker: spec.osImageStream.name: "next" is not a key of the ConfigMap os-image-streams; expected that ConfigMap, in the namespace of Shale, with the image of each stream by its name';
  expect(problemsOf(without).map(formatObjectProblem)).toEqual([problem]);
  expect(renderOffline(without, named)).toEqual({ ok: false, problems: [problem] });
});

test("a custom pool is rendered with the image of worker's stream, before and after a change of worker", () => {
  const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
  const worker = { ...pool, spec: { ...pool.spec, osImageStream: { name: 'next' } } };
  const infra = { ...pool, metadata: { name: 'infra' } };
  const streams = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'os-image-streams', namespace: 'shale-system' },
    data: { next: image },
  };
  const imageOf = (cluster: ReturnType<typeof offlineCluster>) => {
    const rendering = renderOffline(cluster, infra);
    return rendering.ok ? rendering.rendered.spec.osImageURL : rendering.problems;
  };
  const before = [pool, infra, motd, streams];
  expect(imageOf(offlineCluster(before))).toBe('');
  expect(imageOf(changedCluster(before, [worker], { prune: false }))).toBe(image);
  expect(imageOf(offlineCluster([worker, infra, motd]))).toEqual([
    expect.stringContaining('"next", which pool infra inherits'),
  ]);
});
