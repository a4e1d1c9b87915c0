import { beforeEach, expect, test } from 'vitest';
import { Nodes, Pods } from '../api/kubernetes.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';
import { passOfDaemon } from '../test/fixtures/fleet/daemon-pass.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { putNode, putPool } from '../test/fixtures/fleet/pool-under-way.ts';
import { steppedOperator } from '../test/fixtures/fleet/stepped-operator.ts';
import { condition, REBOOT } from '../test/fixtures/objects.ts';
import { deadline } from '../test/fixtures/patience.ts';

let cluster: MemoryCluster;
let operator: ReturnType<typeof steppedOperator>;
let clock: number;
/** Nodes that were at work at the same time. */
let most: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  clock = Date.now();
  most = 0;
  cluster.onWrite = () => {
    most = Math.max(most, cluster.list(Nodes).filter(isAtWork).length);
  };
});

function isAtWork({
  metadata: { name, annotations: set },
}: {
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}): boolean {
  return (
    set?.[annotations.cordonedByShale] !== undefined ||
    cluster.get(MachineConfigNodes, name)?.spec.grant !== undefined
  );
}

/** Control-plane nodes in pools of their own, each with a member of etcd, that have an update to reboot for. */
function start(pools: Readonly<Record<string, readonly string[]>>): void {
  for (const [pool, names] of Object.entries(pools)) {
    putPool(cluster, pool);
    const object = cluster.get(MachineConfigPools, pool);
    if (object !== undefined)
      cluster.put(MachineConfigPools, { ...object, spec: { ...object.spec, maxUnavailable: names.length } });
    for (const name of names) putMember(pool, name);
  }
  operator = steppedOperator(cluster, () => clock);
}

function putMember(pool: string, name: string): void {
  putNode(cluster, pool, name, 1, clock);
  const node = cluster.get(Nodes, name);
  const labels = { ...node?.metadata.labels, 'node-role.kubernetes.io/control-plane': '' };
  if (node !== undefined) cluster.put(Nodes, { ...node, metadata: { ...node.metadata, labels } });
  const object = cluster.get(MachineConfigNodes, name);
  const plan = {
    config: `rendered-${pool}-2`,
    staged: true,
    actions: [...REBOOT],
    causes: [],
    source: 'label',
  };
  if (object !== undefined)
    cluster.put(MachineConfigNodes, { ...object, status: { ...object.status, plan } });
  putEtcd(name, true);
}

function putEtcd(nodeName: string, ready: boolean): void {
  const mirror = { 'kubernetes.io/config.mirror': 'x' };
  cluster.put(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `etcd-${nodeName}`,
      namespace: 'kube-system',
      labels: { component: 'etcd' },
      annotations: mirror,
    },
    spec: { nodeName, containers: [] },
    status: { conditions: [condition('Ready', ready ? 'True' : 'False')] },
  });
}

/** The pools are reconciled at the same moment. @param after ms since the last pass. */
async function pass(pools: string | readonly string[], after = 6_000): Promise<void> {
  clock += after;
  operator.catchUp();
  await Promise.all([pools].flat().map((pool) => operator.pools.reconcile(pool, deadline(10_000))));
}

function runsTarget(name: string): void {
  putNode(cluster, 'master', name, 2, clock);
  const node = cluster.get(Nodes, name);
  const labels = { ...node?.metadata.labels, 'node-role.kubernetes.io/control-plane': '' };
  if (node !== undefined) cluster.put(Nodes, { ...node, metadata: { ...node.metadata, labels } });
}
const reboot = () => {
  for (const { metadata } of cluster.list(Nodes))
    passOfDaemon(cluster, metadata.name, { actions: REBOOT, fails: false });
};
const atWork = () =>
  cluster
    .list(Nodes)
    .filter(isAtWork)
    .map(({ metadata }) => metadata.name);
const waits = (pool: string) =>
  cluster.get(MachineConfigPools, pool)?.status?.conditions?.find(({ type }) => type === 'UpdatesHeld')
    ?.message;

test('nodes of two pools that are reconciled at the same moment go one at a time, and all go', async () => {
  start({ blue: ['a', 'b'], green: ['c'] });
  for (let look = 0; look < 30; look += 1) {
    await pass(['blue', 'green']);
    reboot();
  }
  expect(most).toBe(1);
  expect(atWork()).toEqual([]);
  for (const name of ['a', 'b', 'c'])
    expect(cluster.get(MachineConfigNodes, name)?.status?.configVersion?.current).toMatch(/-2$/);
});

test('the only node of a control plane goes', async () => {
  start({ master: ['a'] });
  await pass('master');
  expect(atWork()).toEqual(['a']);
});

test('a member of etcd that is not Ready holds the others, says so, and holds them no longer once it is', async () => {
  start({ master: ['a', 'b', 'c'] });
  putEtcd('c', false);
  // It has its update already; where it does not, see below.
  runsTarget('c');
  await pass('master');
  expect(atWork()).toEqual([]);
  expect(waits('master')).toContain('pod kube-system/etcd-c is not Ready');
  putEtcd('c', true);
  await pass('master');
  expect(atWork()).toEqual(['a']);
});

test('a member of etcd that has not come back from its own reboot holds the others at once', async () => {
  start({ master: ['a', 'b', 'c'] });
  await pass('master');
  expect(atWork()).toEqual(['a']);
  // Asked a moment before its node has it, when the member still was Ready.
  await pass('master');
  reboot();
  putEtcd('a', false);
  for (let look = 0; look < 5; look += 1) {
    await pass('master', 100);
    expect(atWork()).not.toContain('b');
  }
  expect(waits('master')).toContain('pod kube-system/etcd-a is not Ready');
  putEtcd('a', true);
  await pass('master', 100);
  expect(atWork()).toEqual(['b']);
});

test('a member of etcd that is not Ready goes first, because its own update may repair it', async () => {
  start({ master: ['a', 'b', 'c'] });
  putEtcd('c', false);
  await pass('master');
  expect(atWork()).toEqual(['c']);
  reboot();
  await pass('master');
  putEtcd('c', true);
  await pass('master');
  expect(atWork()).toEqual(['a']);
});

test('a node that is drained is put back when another member goes down, and taken again later', async () => {
  start({ master: ['a', 'b', 'c'] });
  cluster.put(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'guard',
      namespace: 'default',
      ownerReferences: [{ apiVersion: 'v1', kind: 'ReplicaSet', name: 'g', uid: 'g', controller: true }],
    },
    spec: { nodeName: 'a', containers: [] },
  });
  cluster.trouble = (_name, { verb }) => (verb === 'evict' ? 'unavailable' : 'none');
  await pass('master');
  expect([atWork(), cluster.get(MachineConfigNodes, 'a')?.spec.grant]).toEqual([['a'], undefined]);
  putEtcd('b', false);
  await pass('master');
  expect([atWork(), cluster.get(Nodes, 'a')?.spec?.unschedulable]).toEqual([[], undefined]);
  putEtcd('b', true);
  cluster.trouble = () => 'none';
  await pass('master');
  await pass('master');
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.grant?.level).toBe('Disrupt');
});
