import { expect, test } from 'vitest';
import type { ContainerRuntimeConfig } from '../api/container-runtime-config.ts';
import type { KubeletConfig } from '../api/kubelet-config.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';
import { aNode, aPool } from '../test/fixtures/objects.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { selectedConfigs } from './pools.ts';
import { renderPool } from './render.ts';
import { type ServiceObjects, serviceConfigs } from './service-configs.ts';
import { kubeletDropIns } from './services/kubelet-files.ts';

const ROLE = 'machineconfiguration.openshift.io/role';
const labelled = (pool: MachineConfigPool, labels: Record<string, string>): MachineConfigPool => ({
  ...pool,
  metadata: { ...pool.metadata, labels },
});
const worker = labelled(aPool('worker'), { tune: 'worker' });
/** Inherits worker's MachineConfigs, as custom pools do. */
const infra = labelled(
  aPool('infra', {
    machineConfigSelector: { matchExpressions: [{ key: ROLE, operator: 'In', values: ['worker', 'infra'] }] },
  }),
  { tune: 'infra' },
);
const master = labelled(aPool('master'), { tune: 'master' });

const select = (...values: string[]) => ({
  machineConfigPoolSelector: { matchExpressions: [{ key: 'tune', operator: 'In' as const, values }] },
});
const kubelet = (name: string, spec: KubeletConfig['spec'], hour = 0): KubeletConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'KubeletConfig',
  metadata: { name, uid: `uid-${name}`, creationTimestamp: `2026-01-01T0${hour}:00:00Z` },
  spec,
});
const runtime = (
  name: string,
  spec: ContainerRuntimeConfig['spec'],
  more: object = {},
): ContainerRuntimeConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'ContainerRuntimeConfig',
  metadata: { name, uid: `uid-${name}`, ...more },
  spec,
});
const nodeOf = (role: string, containerRuntimeVersion: string, name = role) =>
  aNode(name, {
    metadata: { name, labels: { [`node-role.kubernetes.io/${role}`]: '' } },
    status: { nodeInfo: { containerRuntimeVersion } },
  });

const verdicts = (objects: Partial<ServiceObjects>) =>
  serviceConfigs(
    {
      kubeletConfigs: [],
      containerRuntimeConfigs: [],
      pools: [worker, infra, master],
      nodes: [],
      ...objects,
    },
    'v1',
  );
const generatedBy = (objects: Partial<ServiceObjects>) =>
  verdicts(objects).flatMap(({ generated }) => generated);
const names = (configs: readonly MachineConfig[]) => configs.map(({ metadata }) => metadata.name);

/** The fields of a kubelet's drop-ins that a pool's nodes have after rendering. */
function kubeletOn(pool: MachineConfigPool, configs: readonly MachineConfig[]): Record<string, unknown> {
  const rendering = renderPool({ pool, configs: selectedConfigs(pool, configs), controllerVersion: 'v1' });
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
  const parsed = parseNodeConfig(rendering.rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const fields = Object.values(kubeletDropIns).map((path) => {
    const file = parsed.config.files.get(path);
    return file === undefined ? {} : (JSON.parse(Buffer.from(file.contents).toString()) as object);
  });
  const { apiVersion: _a, kind: _k, ...rest } = Object.assign({}, ...fields) as Record<string, unknown>;
  return rest;
}

test('a MachineConfig for each selected pool has MCO’s name, the pool’s role and the object as its owner', () => {
  const [first, second] = generatedBy({
    kubeletConfigs: [kubelet('a', { ...select('worker', 'infra'), kubeletConfig: { maxPods: 100 } })],
  });
  expect(first?.metadata).toEqual({
    name: '99-worker-generated-kubelet',
    labels: { [ROLE]: 'worker' },
    annotations: { [annotations.generatedByController]: 'v1' },
    ownerReferences: [
      {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'KubeletConfig',
        name: 'a',
        uid: 'uid-a',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  });
  expect(second?.metadata.name).toBe('99-infra-generated-kubelet');
});

test('the newest object of a pool has the highest suffix, and counts as a whole', () => {
  const configs = generatedBy({
    kubeletConfigs: [
      kubelet('new', { ...select('worker'), kubeletConfig: { podPidsLimit: 5 } }, 2),
      kubelet('old', { ...select('worker'), kubeletConfig: { maxPods: 9, eventBurst: 7 } }, 1),
    ],
  });
  expect(names(configs).toSorted()).toEqual(['99-worker-generated-kubelet', '99-worker-generated-kubelet-1']);
  expect(kubeletOn(worker, configs)).toEqual({ podPidsLimit: 5 });
});

test('a custom pool has worker’s settings until it has some of its own', () => {
  const ofWorker = kubelet('w', { ...select('worker'), kubeletConfig: { maxPods: 9, eventBurst: 7 } });
  const ofInfra = kubelet('i', { ...select('infra'), kubeletConfig: { eventBurst: 8 } }, 1);
  expect(kubeletOn(infra, generatedBy({ kubeletConfigs: [ofWorker] }))).toEqual({
    maxPods: 9,
    eventBurst: 7,
  });
  const both = generatedBy({ kubeletConfigs: [ofWorker, ofInfra] });
  expect(kubeletOn(infra, both)).toEqual({ eventBurst: 8 });
  expect(kubeletOn(worker, both)).toEqual({ maxPods: 9, eventBurst: 7 });
});

test('an object that is invalid has no MachineConfig, and keeps the names of what it had', () => {
  const [verdict] = verdicts({
    kubeletConfigs: [kubelet('a', { ...select('worker'), kubeletConfig: { maxPods: '250' } })],
  });
  expect(verdict?.problems.map(({ path }) => path)).toEqual(['spec.kubeletConfig.maxPods']);
  expect([verdict?.generated, verdict?.kept]).toEqual([[], ['99-worker-generated-kubelet']]);
});

test('an object without settings has no MachineConfig, and keeps none', () => {
  const [verdict] = verdicts({ kubeletConfigs: [kubelet('a', select('worker'))] });
  expect([verdict?.generated, verdict?.kept, verdict?.poolProblems]).toEqual([[], [], []]);
});

test.each<[string, KubeletConfig['spec']]>([
  ['no selector', {}],
  ['an empty selector', { machineConfigPoolSelector: {} }],
  ['a selector that matches no pool', select('nothing')],
])('%s selects no pool', (_what, spec) => {
  const [verdict] = verdicts({ kubeletConfigs: [kubelet('a', { ...spec, kubeletConfig: { maxPods: 1 } })] });
  expect(verdict?.poolProblems).toEqual([
    { pool: '', isOpen: true, why: expect.stringContaining('selects no MachineConfigPool') },
  ]);
  expect(verdict?.generated).toEqual([]);
});

test('static pods end on workers, and never on control-plane nodes', () => {
  const controlPlane = labelled(
    aPool('cp', { nodeSelector: { matchLabels: { 'node-role.kubernetes.io/control-plane': '' } } }),
    { tune: 'cp' },
  );
  const [verdict] = verdicts({
    kubeletConfigs: [
      kubelet('a', { ...select('worker', 'master', 'cp'), kubeletConfig: { staticPodPath: '' } }),
    ],
    pools: [worker, master, controlPlane],
  });
  expect(names(verdict?.generated ?? [])).toEqual(['99-worker-generated-kubelet']);
  expect(verdict?.poolProblems.map(({ pool }) => pool)).toEqual(['master', 'cp']);
  const [other] = verdicts({
    kubeletConfigs: [kubelet('b', { ...select('master'), kubeletConfig: { maxPods: 9 } })],
  });
  expect(other?.poolProblems).toEqual([]);
  expect(names(other?.generated ?? [])).toEqual(['99-master-generated-kubelet']);
});

test('the container runtime is what the nodes of the pool report', () => {
  const containerRuntimeConfigs = [
    runtime('a', { ...select('worker', 'master'), containerRuntimeConfig: { logLevel: 'debug' } }),
  ];
  const [verdict] = verdicts({
    containerRuntimeConfigs,
    nodes: [nodeOf('worker', 'containerd://2.1.4'), nodeOf('master', 'cri-o://1.34.1')],
  });
  const text = (verdict?.generated ?? []).map(({ metadata, spec }) => [metadata.name, JSON.stringify(spec)]);
  expect(text).toEqual([
    ['99-worker-generated-containerruntime', expect.stringContaining('/etc/containerd/conf.d/')],
    ['99-master-generated-containerruntime', expect.stringContaining('/etc/crio/crio.conf.d/')],
  ]);
});

test('where nodes of a pool, or of one that inherits from it, differ, nothing is generated, and why is said', () => {
  const containerRuntimeConfigs = [
    runtime('a', { ...select('worker'), containerRuntimeConfig: { logLevel: 'debug' } }),
  ];
  const nodes = [nodeOf('worker', 'containerd://2.1.4'), nodeOf('infra', 'cri-o://1.34.1')];
  const [verdict] = verdicts({ containerRuntimeConfigs, nodes });
  expect(verdict?.generated).toEqual([]);
  expect(verdict?.kept).toEqual(['99-worker-generated-containerruntime']);
  expect(verdict?.poolProblems).toEqual([
    { pool: 'worker', isOpen: true, why: expect.stringContaining('different container runtimes') },
  ]);
  const named = { ...worker, spec: { ...worker.spec, shale: { containerRuntime: 'containerd' } as const } };
  const [decided] = verdicts({ containerRuntimeConfigs, nodes, pools: [named, infra] });
  expect(names(decided?.generated ?? [])).toEqual(['99-worker-generated-containerruntime']);
});

test('an object that is being deleted counts no more', () => {
  const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const containerRuntimeConfigs = [
    runtime('a', { ...select('worker'), containerRuntimeConfig: { logLevel: 'debug' } }, deleted),
  ];
  expect(verdicts({ containerRuntimeConfigs })).toEqual([]);
});
