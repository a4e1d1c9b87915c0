import { beforeEach, expect, it } from 'vitest';
import { type Node, Nodes, type Pod, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, condition } from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;
const NOW = Date.parse('2026-06-01T00:00:00Z');
const FLAG = { [annotations.plannedMaintenance]: '{"by":"ann","reason":"disk"}' };
const NodeMaintenances = {
  group: 'nodemaintenance.medik8s.io',
  version: 'v1beta1',
  kind: 'NodeMaintenance',
  plural: 'nodemaintenances',
  namespaced: false,
};

let cluster: MemoryCluster;
let operator: SteppedOperator;
/** Kinds that were listed by requests. */
let listed: string[];

beforeEach(() => {
  cluster = new MemoryCluster();
  listed = [];
  const own = cluster.client();
  const list: ApiClient['list'] = (kind, where) => {
    listed.push(kind.kind);
    return own.list(kind, where);
  };
  cluster.client = () => ({ ...own, list });
  operator = steppedOperator(cluster, () => NOW);
  const status = { conditions: [condition('Updated')] };
  cluster.put(MachineConfigNodes, { ...aMachineConfigNode('a'), status });
});

function putNode(set: Readonly<Record<string, string>>, spec: Node['spec'] = { unschedulable: true }): void {
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', uid: 'uid-a', annotations: set }, spec }));
}

function putPod(name: string, more: Partial<Pod> = {}): void {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true };
  const metadata = {
    name,
    namespace: 'apps',
    labels: { app: name },
    ownerReferences: [owner],
    ...more.metadata,
  };
  const spec = { nodeName: 'a', containers: [{ name: 'c', image: 'i' }], ...more.spec };
  cluster.put(Pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
}

function putBudget(name: string, disruptionsAllowed: number): void {
  cluster.put(PodDisruptionBudgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'apps' },
    spec: { selector: { matchLabels: { app: name } } },
    status: { disruptionsAllowed },
  });
}

async function pass() {
  operator.catchUp();
  const result = await operator.maintenanceDrains.reconcile('a', signal);
  const { conditions, maintenanceDrain } = cluster.get(MachineConfigNodes, 'a')?.status ?? {};
  return { result, maintenanceDrain, drained: conditions?.find(({ type }) => type === 'MaintenanceDrained') };
}

it('a node in maintenance names the pods that its drain waits for, and why', async () => {
  putNode(FLAG);
  putPod('blocked');
  putBudget('blocked', 0);
  putPod('free');
  putBudget('free', 1);
  putPod('ending', { metadata: { name: 'ending', deletionTimestamp: '2026-06-01T00:00:30Z' } });
  const daemonSet = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
  putPod('agent', { metadata: { name: 'agent', ownerReferences: [daemonSet] } });
  const { result, maintenanceDrain, drained } = await pass();
  expect(maintenanceDrain).toEqual({
    pods: 3,
    waitsFor: [
      { pod: 'apps/blocked', reason: 'PodDisruptionBudget blocked (allows 0 disruptions)' },
      { pod: 'apps/ending', reason: 'it is still terminating' },
      { pod: 'apps/free', reason: 'it is not evicted yet' },
    ],
  });
  expect(drained).toMatchObject({
    status: 'False',
    reason: 'AwaitingPods',
    message:
      'The drain of the maintenance waits for pod apps/blocked: PodDisruptionBudget blocked (allows 0 disruptions); pod apps/ending: it is still terminating; pod apps/free: it is not evicted yet',
  });
  expect(result).toEqual({ kind: 'requeue', afterMs: 15_000 });
  expect(listed.filter((kind) => kind !== 'NodeMaintenance')).toEqual(['Pod', 'PodDisruptionBudget']);
});

it('many pods are counted, and the first of them named', async () => {
  putNode(FLAG);
  for (let index = 10; index < 40; index += 1) putPod(`p-${index}`);
  const { maintenanceDrain, drained } = await pass();
  expect([maintenanceDrain?.pods, maintenanceDrain?.waitsFor.length]).toEqual([30, 20]);
  expect(drained?.message).toMatch(/; and 27 more pods$/);
});

it('one that is drained says so, and the end of the maintenance takes it all away', async () => {
  putNode(FLAG);
  putPod('last');
  await pass();
  cluster.remove(Pods, 'last');
  const { maintenanceDrain, drained } = await pass();
  expect([maintenanceDrain, drained?.status, drained?.reason]).toEqual([undefined, 'True', 'Drained']);
  putNode({}, {});
  expect(await pass()).toEqual({ result: { kind: 'done' }, maintenanceDrain: undefined, drained: undefined });
});

it('pods that tolerate the cordon and came after it are not waited for', async () => {
  const taint = {
    key: 'node.kubernetes.io/unschedulable',
    effect: 'NoSchedule',
    timeAdded: '2026-05-31T23:00:00Z',
  };
  putNode(FLAG, { unschedulable: true, taints: [taint] });
  const tolerations = [{ operator: 'Exists' as const }];
  const metadata = { name: 'tolerant', creationTimestamp: '2026-05-31T23:30:00Z' };
  putPod('tolerant', { metadata, spec: { containers: [], tolerations } });
  expect((await pass()).drained?.status).toBe('True');
});

it('a NodeMaintenance is one, and its pods are listed once it has cordoned the node', async () => {
  const apiVersion = 'nodemaintenance.medik8s.io/v1beta1';
  const maintenance = {
    apiVersion,
    kind: 'NodeMaintenance',
    metadata: { name: 'm' },
    spec: { nodeName: 'a' },
  };
  cluster.put(NodeMaintenances, maintenance as Parameters<MemoryCluster['put']>[1]);
  putPod('web');
  putNode({}, {});
  expect((await pass()).result).toEqual({ kind: 'done' });
  expect(listed).toEqual([]);
  putNode({});
  expect((await pass()).maintenanceDrain?.pods).toBe(1);
});

it('of a node that somebody only cordoned no pod is listed', async () => {
  putNode({});
  putPod('web');
  const { result, drained } = await pass();
  expect(result).toEqual({ kind: 'requeue', afterMs: 30_000 });
  expect(drained).toBeUndefined();
  expect(listed).not.toContain('Pod');
});
