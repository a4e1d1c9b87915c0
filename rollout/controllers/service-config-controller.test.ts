import { beforeEach, expect, it } from 'vitest';
import { ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import { type KubeletConfig, KubeletConfigs } from '../../api/kubelet-config.ts';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { kstatus, ownConditions } from '../../test/fixtures/kstatus.ts';
import { aNode, aPool } from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;
const KUBELET = '99-worker-generated-kubelet';
const RUNTIME = '99-worker-generated-containerruntime';
const machineConfigPoolSelector = { matchLabels: { tune: 'yes' } };

let cluster: MemoryCluster;
let operator: SteppedOperator;
let now: number;

beforeEach(() => {
  now = Date.parse('2026-06-01T00:00:00Z');
  cluster = new MemoryCluster();
  operator = steppedOperator(cluster, () => now);
  const pool = aPool('worker');
  cluster.put(MachineConfigPools, { ...pool, metadata: { ...pool.metadata, labels: { tune: 'yes' } } });
});

function putKubelet(kubeletConfig: object, generation = 1, name = 'tuning'): void {
  const known = cluster.get(KubeletConfigs, name);
  cluster.put(KubeletConfigs, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'KubeletConfig',
    metadata: { uid: `uid-${name}`, ...known?.metadata, name, generation },
    spec: { machineConfigPoolSelector, kubeletConfig },
    ...(known?.status === undefined ? {} : { status: known.status }),
  } as KubeletConfig);
}

function putRuntime(logLevel: string): void {
  cluster.put(ContainerRuntimeConfigs, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'ContainerRuntimeConfig',
    metadata: { name: 'logs', uid: 'uid-logs', generation: 1 },
    spec: { machineConfigPoolSelector, containerRuntimeConfig: { logLevel } },
  });
}

function putNode(name: string, containerRuntimeVersion: string): void {
  const labels = { 'node-role.kubernetes.io/worker': '' };
  cluster.put(
    Nodes,
    aNode(name, { metadata: { name, labels }, status: { nodeInfo: { containerRuntimeVersion } } }),
  );
}

async function reconcile(): Promise<void> {
  operator.catchUp();
  expect(await operator.services.reconcile('service-configs', signal)).toEqual({ kind: 'done' });
  operator.catchUp();
}

const names = () => cluster.list(MachineConfigs).map(({ metadata }) => metadata.name);
const textOf = (name: string) =>
  JSON.stringify(cluster.get(MachineConfigs, name)?.spec ?? '').replace(
    /base64,([\w+/=]+)/g,
    (_, data: string) => Buffer.from(data, 'base64').toString(),
  );
const conditions = (kind: typeof KubeletConfigs | typeof ContainerRuntimeConfigs, name: string) =>
  ownConditions(cluster.get(kind as typeof KubeletConfigs, name)?.status?.conditions).map(
    ({ type, status, observedGeneration, message }) => `${type} ${status} ${observedGeneration}: ${message}`,
  );

it('generates what a KubeletConfig sets, records its suffix, and reports it', async () => {
  putKubelet({ maxPods: 42 });
  await reconcile();
  expect(textOf(KUBELET)).toContain('"maxPods": 42');
  expect(cluster.get(KubeletConfigs, 'tuning')?.metadata.annotations).toEqual({
    [annotations.nameSuffix]: '',
  });
  expect(conditions(KubeletConfigs, 'tuning')).toEqual([
    expect.stringMatching(/^Success True 1: Generated 99-worker-generated-kubelet\. .*--config-dir=/),
  ]);
});

it('writes nothing again that is as it should be', async () => {
  putKubelet({ maxPods: 42, featureOfTomorrow: 1 });
  await reconcile();
  const { writes } = cluster;
  now += 60_000;
  await reconcile();
  expect(cluster.writes).toBe(writes);
});

it('keeps what an earlier version set while the object is invalid, and says why once', async () => {
  putKubelet({ maxPods: 42 });
  await reconcile();
  putKubelet({ maxPods: '250' }, 2);
  await reconcile();
  await reconcile();
  expect(textOf(KUBELET)).toContain('"maxPods": 42');
  expect(conditions(KubeletConfigs, 'tuning')).toEqual([
    'Failure True 2: spec.kubeletConfig.maxPods: is "250"; expected an integer of 32 bits',
  ]);
  expect(operator.events).toEqual([
    ['Warning', 'tuning', 'ServiceConfigFailure', expect.stringContaining('maxPods: is "250"')],
  ]);
  putKubelet({ maxPods: 43 }, 3);
  await reconcile();
  expect(textOf(KUBELET)).toContain('"maxPods": 43');
  expect(conditions(KubeletConfigs, 'tuning')).toEqual([expect.stringMatching(/^Success True 3/)]);
});

it('reports fields that may have no effect beside success', async () => {
  putKubelet({ maxPodz: 42 });
  await reconcile();
  expect(conditions(KubeletConfigs, 'tuning')).toEqual([
    expect.stringMatching(/^Warning True 1: .*maxPodz/),
    expect.stringMatching(/^Success True 1/),
  ]);
});

it('deletes what was generated from an object that is gone or sets nothing any more', async () => {
  putNode('a', 'cri-o://1.34.1');
  putKubelet({ maxPods: 42 });
  putRuntime('debug');
  await reconcile();
  expect(names().toSorted()).toEqual([RUNTIME, KUBELET]);
  cluster.remove(ContainerRuntimeConfigs, 'logs');
  putKubelet({}, 2);
  await reconcile();
  expect(names()).toEqual([]);
});

it('restores what somebody changed', async () => {
  putKubelet({ maxPods: 42 });
  await reconcile();
  const config = cluster.get(MachineConfigs, KUBELET);
  if (config === undefined) throw new Error('nothing was generated');
  cluster.put(MachineConfigs, { ...config, spec: {}, metadata: { ...config.metadata, labels: {} } });
  await reconcile();
  expect(textOf(KUBELET)).toContain('"maxPods": 42');
  expect(cluster.get(MachineConfigs, KUBELET)?.metadata.labels).not.toEqual({});
});

it('leaves a MachineConfig of an admin alone that has the name', async () => {
  const own = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: KUBELET },
    spec: { kernelArguments: ['quiet'] },
  };
  cluster.put(MachineConfigs, own);
  putKubelet({ maxPods: 42 });
  await reconcile();
  expect(cluster.get(MachineConfigs, KUBELET)?.spec).toEqual(own.spec);
  expect(conditions(KubeletConfigs, 'tuning')).toEqual([
    expect.stringMatching(/^Failure True 1: MachineConfig 99-worker-generated-kubelet exists/),
  ]);
});

it('renders a ContainerRuntimeConfig once the nodes tell their runtime, and keeps it when they are gone', async () => {
  putRuntime('debug');
  await reconcile();
  expect(names()).toEqual([]);
  expect(conditions(ContainerRuntimeConfigs, 'logs')).toEqual([
    expect.stringMatching(/^Failure True 1: pool worker: no node has reported/),
  ]);
  putNode('a', 'containerd://2.1.4');
  await reconcile();
  expect(textOf(RUNTIME)).toContain('/etc/containerd/conf.d/');
  expect(conditions(ContainerRuntimeConfigs, 'logs')).toEqual([
    expect.stringMatching(/^Success True 1: .*containerd reads it if/),
  ]);
  cluster.remove(Nodes, 'a');
  await reconcile();
  expect(names()).toEqual([RUNTIME]);
});

it('tools that know nothing of these kinds wait for what nodes decide, and fail for what somebody has to change', async () => {
  const seenBy = () => kstatus(cluster.get(ContainerRuntimeConfigs, 'logs'));
  const types = () =>
    cluster.get(ContainerRuntimeConfigs, 'logs')?.status?.conditions?.map(({ type }) => type);
  putRuntime('debug');
  await reconcile();
  expect(seenBy()).toBe('InProgress');
  putNode('a', 'cri-o://1.34.1');
  await reconcile();
  expect(seenBy()).toBe('Current');
  // Tools of MCO read the last condition.
  expect(types()).toEqual(['Ready', 'Reconciling', 'Stalled', 'Success']);
  putRuntime('loud');
  await reconcile();
  expect(seenBy()).toBe('Failed');
  expect(types()?.at(-1)).toBe('Failure');
});
