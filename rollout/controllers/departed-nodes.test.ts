import { beforeEach, expect, it } from 'vitest';
import { Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, aPool, condition } from '../../test/fixtures/objects.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions } from '../options.ts';

const signal = new AbortController().signal;
const NOW = Date.parse('2026-06-01T00:00:00Z');
const CONFIG = 'rendered-worker-1';

let cluster: MemoryCluster;
let operator: SteppedOperator;
/** ms since the epoch. */
let now: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = NOW;
  operator = steppedOperator(cluster, () => now);
});

/** A node in the middle of an update: leased, cordoned and granted. */
function putBusyNode(ready = true, more: Partial<Node['metadata']> = {}): void {
  cluster.put(
    Nodes,
    aNode('a', {
      metadata: { name: 'a', uid: 'uid-a', annotations: { [annotations.cordonedByShale]: 'true' }, ...more },
      spec: { unschedulable: true },
      status: { conditions: [condition('Ready', ready ? 'True' : 'False')] },
    }),
  );
  const grant = { level: 'Disrupt' as const, config: CONFIG, leaseHolder: 'shale-operator' };
  cluster.put(MachineConfigNodes, aMachineConfigNode('a', { grant }));
  putLease();
  operator.catchUp();
}

function putLease(holderIdentity = defaultRolloutOptions.leases.holder): void {
  const time = new Date(NOW).toISOString();
  cluster.put(Leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseNameOf('a'), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'uid-lease' },
    spec: { holderIdentity, leaseDurationSeconds: 300, acquireTime: time, renewTime: time },
  });
}

const holder = () => cluster.get(Leases, leaseNameOf('a'))?.spec?.holderIdentity ?? '';
const grant = () => cluster.get(MachineConfigNodes, 'a')?.spec.grant;

it('a node that is Ready gets back its schedulability, and loses grant and lease', async () => {
  putBusyNode();
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(grant()).toBeUndefined();
  expect(cluster.get(Nodes, 'a')?.spec?.unschedulable).toBeUndefined();
  expect(cluster.get(Nodes, 'a')?.metadata.annotations?.[annotations.cordonedByShale]).toBeUndefined();
  expect(holder()).toBe('');
  expect(operator.events).toEqual([['Normal', 'a', 'Uncordon', expect.stringMatching(/is in no pool/)]]);
});

const NodeMaintenances = {
  group: 'nodemaintenance.medik8s.io',
  version: 'v1beta1',
  kind: 'NodeMaintenance',
  plural: 'nodemaintenances',
  namespaced: false,
};

it('a node that somebody maintains loses grant and lease, and its cordon once that is over', async () => {
  putBusyNode();
  const maintenance = { apiVersion: 'nodemaintenance.medik8s.io/v1beta1', kind: 'NodeMaintenance' };
  cluster.put(NodeMaintenances, {
    ...maintenance,
    metadata: { name: 'm' },
    spec: { nodeName: 'a' },
  });
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'requeue', afterMs: 30_000 });
  expect([grant(), holder(), cluster.get(Nodes, 'a')?.spec?.unschedulable]).toEqual([undefined, '', true]);
  operator.catchUp();
  const before = cluster.writes;
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'requeue', afterMs: 30_000 });
  expect(cluster.writes).toBe(before);

  cluster.remove(NodeMaintenances, 'm');
  now += 30_000;
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(cluster.get(Nodes, 'a')?.spec?.unschedulable).toBeUndefined();
});

it('the daemon of a node is told by nobody else that it is given back', async () => {
  const heldBy = () => cluster.get(MachineConfigNodes, 'a')?.spec.heldBy;
  cluster.put(Nodes, aNode('a'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('a', { heldBy: 'its lease is held by ops' }));
  putLease('ops');
  operator.catchUp();
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'requeue', afterMs: 30_000 });
  expect(heldBy()).toBeDefined();
  cluster.remove(Leases, leaseNameOf('a'));
  operator.catchUp();
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(heldBy()).toBeUndefined();
});

it('a node on which a step is being taken that was decided while it was in a pool is looked at again soon', async () => {
  putBusyNode();
  const [node, machineConfigNode] = [
    operator.caches.nodes.get('a'),
    operator.caches.machineConfigNodes.get('a'),
  ];
  if (node === undefined || machineConfigNode === undefined) throw new Error('nothing was put');
  const piece = { node, machineConfigNode, onlyNode: false, hooks: { before: [], after: [] } };
  const [, result] = await Promise.all([
    operator.work.carryOut({ kind: 'back-out', why: '' }, piece, signal),
    operator.departed.reconcile('a', signal),
  ]);
  expect(result).toEqual({ kind: 'requeue', afterMs: 100 });
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(holder()).toBe('');
});

it('a node that may be rebooting stays cordoned and leased, loses the grant, and is looked at again', async () => {
  putBusyNode(false);
  expect(await operator.departed.reconcile('a', signal)).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
  expect(grant()).toBeUndefined();
  expect(cluster.get(Nodes, 'a')?.spec?.unschedulable).toBe(true);
  expect(holder()).toBe(defaultRolloutOptions.leases.holder);
});

it('a node that a pool has is that pool’s', async () => {
  cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
  const role = 'node-role.kubernetes.io/worker';
  putBusyNode(true, { labels: { [role]: '' } });
  operator.membership.setPool(aPool('worker', { nodeSelector: { matchLabels: { [role]: '' } } }));
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(grant()).toBeDefined();
});

it.each([['its Node', Nodes] as const, ['its MachineConfigNode', MachineConfigNodes] as const])(
  'the lease of a node without %s is released',
  async (_what, kind) => {
    putBusyNode();
    cluster.remove<KubernetesObject>(kind, 'a');
    operator.catchUp();
    expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
    expect(holder()).toBe('');
  },
);

it('the lease of another is left alone', async () => {
  putLease('node-healthcheck');
  operator.catchUp();
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(holder()).toBe('node-healthcheck');
});

it('a node on which nothing of ours is left is written nothing', async () => {
  cluster.put(Nodes, aNode('a'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
  operator.catchUp();
  const before = cluster.writes;
  expect(await operator.departed.reconcile('a', signal)).toEqual({ kind: 'done' });
  expect(cluster.writes).toBe(before);
});

it('a node in no pool that keeps its startup taint is reported once it is overdue, and once only', async () => {
  const registered = NOW - defaultRolloutOptions.reports.newNodeAfterSeconds * 1000;
  const put = (name: string, at: number) =>
    cluster.put(
      Nodes,
      aNode(name, {
        metadata: { name, uid: `uid-${name}`, creationTimestamp: new Date(at).toISOString() },
        spec: { taints: [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }] },
      }),
    );
  put('old', registered);
  put('young', registered + 5_000);
  operator.catchUp();
  expect(await operator.departed.reconcile('young', signal)).toMatchObject({
    kind: 'requeue',
    afterMs: 5_000,
  });
  for (let look = 0; look < 2; look += 1)
    expect(await operator.departed.reconcile('old', signal)).toEqual({ kind: 'done' });
  expect(operator.events).toEqual([
    ['Warning', 'old', 'NotConfigured', expect.stringMatching(/it is in no MachineConfigPool\. Label it/)],
  ]);
});
