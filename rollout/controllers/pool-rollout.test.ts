import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import type { Span } from '../../cluster/tracing/span.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aRecord,
  aRenderedConfig,
  condition,
  RESTART,
} from '../../test/fixtures/objects.ts';
import { MachineLookup } from '../node-claims.ts';
import { defaultRolloutOptions as options } from '../options.ts';
import { PoolController } from './pool-controller.ts';

const signal = new AbortController().signal;
const OLD = 'rendered-worker-1';
const NEW = 'rendered-worker-2';
const WORKER = 'node-role.kubernetes.io/worker';
const START = Date.parse('2026-06-01T00:00:00Z');

let cluster: MemoryCluster;
let operator: SteppedOperator;
let controller: PoolController;
let now: number;
let spans: Span[];
let pools: Record<string, number>;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = START;
  spans = [];
  pools = {};
  operator = steppedOperator(cluster, () => now);
  const client = cluster.client();
  const events = operator.events as [
    type: 'Normal' | 'Warning',
    object: string,
    reason: string,
    message: string,
  ][];
  controller = new PoolController({
    ...operator,
    client,
    machines: new MachineLookup(client, () => now),
    events: {
      normal: ({ metadata }, reason, message) => void events.push(['Normal', metadata.name, reason, message]),
      warning: ({ metadata }, reason, message) =>
        void events.push(['Warning', metadata.name, reason, message]),
    },
    log: pino({ level: 'silent' }),
    options,
    metrics: {
      setPool: (pool: string, nodes: readonly unknown[]) => {
        pools[pool] = nodes.length;
      },
      setNewNodes: () => undefined,
      setUpdatesHeld: () => undefined,
      setOverdueHooks: () => undefined,
      setBootImageLag: () => undefined,
      setNewNodeImageLag: () => undefined,
      removePool: (pool: string) => {
        delete pools[pool];
      },
    } as never,
    tracer: { record: (span: Span) => void spans.push(span) } as never,
    now: () => now,
  });
  for (const name of [OLD, NEW]) {
    const config = aRenderedConfig(name);
    const owner = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      name: 'worker',
      uid: 'uid-worker',
      controller: true,
    };
    cluster.put(MachineConfigs, { ...config, metadata: { ...config.metadata, ownerReferences: [owner] } });
  }
  putPool();
  for (const revision of aRecord(pool(), { config: OLD }, { config: NEW }))
    cluster.put(PoolRevisions, revision);
});

/** The pool, which goes from the old config to the new one. */
function putPool(more: Readonly<Record<string, string>> = {}, spec = {}): void {
  const pool = aPool('worker', {
    configuration: { name: NEW },
    nodeSelector: { matchLabels: { [WORKER]: '' } },
    ...spec,
  });
  cluster.put(MachineConfigPools, {
    ...pool,
    metadata: { ...pool.metadata, annotations: more },
    status: { configuration: { name: OLD } },
  });
}

function putNode(
  name: string,
  status: NonNullable<Parameters<typeof aMachineConfigNode>[2]>,
  spec = {},
): void {
  cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels: { [WORKER]: '' } } }));
  const desired = { configVersion: { desired: NEW } };
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode(name, { ...desired, ...spec }, { mode: 'Standard', ...status }),
  );
}

const plan = { config: NEW, staged: true, actions: [...RESTART], causes: [], source: 'label' };
const runs = (config: string) => ({ configVersion: { current: config, desired: NEW } });
const STAGED = { ...runs(OLD), plan };
const UPDATED = { ...runs(NEW), conditions: [condition('Updated')] };
const FAILED = { ...STAGED, conditions: [condition('NodeDegraded', 'True', 'no space')] };

async function look() {
  operator.catchUp();
  now += 10_000;
  const result = await controller.reconcile('worker', signal);
  operator.catchUp();
  return result;
}

const pool = (): MachineConfigPool => cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
const verdict = (type: string) => {
  const found = pool().status?.conditions?.find((candidate) => candidate.type === type);
  return `${found?.status} ${found?.reason}`;
};
const reasons = () => operator.events.map(([type, object, reason]) => `${type} ${object} ${reason}`);
const grantOf = (node: string) => cluster.get(MachineConfigNodes, node)?.spec.grant?.level;
const held = () => {
  const text = pool().metadata.annotations?.[annotations.rollback];
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
};

describe('a write that fails', () => {
  it('is reported to the caller after everything else was done, the status included', async () => {
    putNode('a', STAGED, { configVersion: { desired: OLD } });
    putNode('b', STAGED, { configVersion: { desired: OLD } });
    operator.catchUp();
    let writes = 0;
    cluster.trouble = () => {
      writes += 1;
      return writes === 1 ? 'unavailable' : 'none';
    };
    await expect(controller.reconcile('worker', signal)).rejects.toMatchObject({ status: 503 });
    const desired = ['a', 'b'].map(
      (name) => cluster.get(MachineConfigNodes, name)?.spec.configVersion.desired,
    );
    expect(desired.toSorted()).toEqual([OLD, NEW]);
    expect(verdict('Updating')).toBe('True NodesUpdating');
    expect(pools).toEqual({ worker: 2 });
    cluster.trouble = () => 'none';
    await look();
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
  });

  it('of the record gives no node a new target, and what is under way goes on', async () => {
    for (const { metadata } of cluster.list(PoolRevisions)) cluster.remove(PoolRevisions, metadata.name);
    putNode('a', STAGED, { configVersion: { desired: OLD } });
    putNode('b', UPDATED, { grant: { level: 'Live', config: NEW, leaseHolder: 'shale' } });
    operator.catchUp();
    cluster.trouble = (name) => (name.startsWith('worker-') ? 'unavailable' : 'none');
    await expect(controller.reconcile('worker', signal)).rejects.toMatchObject({ status: 503 });
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
    for (let index = 0; index < 5; index += 1) await look().catch(() => undefined);
    expect(grantOf('a')).toBeUndefined();
    expect(grantOf('b')).toBeUndefined();
    cluster.trouble = () => 'none';
    await look();
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
    expect(cluster.list(PoolRevisions).map(({ spec }) => spec.machineConfig.name)).toEqual([OLD, NEW]);
  });

  it('of several nodes is reported as all of them', async () => {
    for (const name of ['a', 'b']) putNode(name, STAGED, { configVersion: { desired: OLD } });
    operator.catchUp();
    let writes = 0;
    cluster.trouble = () => {
      writes += 1;
      return writes <= 2 ? 'unavailable' : 'none';
    };
    await expect(controller.reconcile('worker', signal)).rejects.toMatchObject({
      errors: [{ status: 503 }, { status: 503 }],
    });
  });
});

describe('a node without a MachineConfigNode', () => {
  it('is given one, which the garbage collector deletes with the node', async () => {
    cluster.put(Nodes, aNode('new', { metadata: { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' } } }));
    await look();
    const { metadata, spec } = cluster.get(MachineConfigNodes, 'new') ?? {};
    expect(metadata?.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'new', uid: 'uid-new' },
    ]);
    expect(spec).toEqual({
      node: { name: 'new' },
      pool: { name: 'worker' },
      configVersion: { desired: NEW },
    });
  });

  it('that somebody else gave one meanwhile is no failure; any other refusal is', async () => {
    cluster.put(Nodes, aNode('new', { metadata: { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' } } }));
    operator.catchUp();
    cluster.put(MachineConfigNodes, aMachineConfigNode('new'));
    await expect(controller.reconcile('worker', signal)).resolves.toBeDefined();
    cluster.remove(MachineConfigNodes, 'new');
    operator.catchUp();
    cluster.trouble = () => 'unavailable';
    await expect(controller.reconcile('worker', signal)).rejects.toMatchObject({ status: 503 });
  });
});

describe('a rollout', () => {
  it('ends with an event and a span, and needs no further look', async () => {
    putNode('a', STAGED);
    await look();
    expect(grantOf('a')).toBe('Live');
    expect(verdict('Updating')).toBe('True NodesUpdating');
    expect(reasons()).toEqual([]);
    putNode('a', UPDATED);
    await look();
    expect(verdict('Updated')).toBe('True AllNodesUpdated');
    expect(pool().status?.configuration?.name).toBe(NEW);
    expect(operator.events).toContainEqual(['Normal', 'worker', 'Completed', `All nodes run ${NEW}`]);
    expect(spans).toMatchObject([
      { name: 'rollout', attributes: { 'shale.pool': 'worker', 'shale.config': NEW, 'shale.nodes': 1 } },
    ]);
    await look();
    expect(await look()).toMatchObject({ kind: 'done' });
    expect(reasons().filter((reason) => reason.endsWith('Completed'))).toHaveLength(1);
    expect(spans).toHaveLength(1);
  });

  it('is traced from when its config was rendered, where nodes were outstanding before', async () => {
    const config = cluster.get(MachineConfigs, NEW) ?? aRenderedConfig(NEW);
    const creationTimestamp = new Date(START + 15_000).toISOString();
    cluster.put(MachineConfigs, { ...config, metadata: { ...config.metadata, creationTimestamp } });
    putNode('a', STAGED);
    await look();
    putNode('a', UPDATED);
    await look();
    expect(spans).toMatchObject([{ startedAt: START + 15_000, endedAt: START + 20_000 }]);
  });

  it('looks again in time to renew its leases', async () => {
    putNode('a', STAGED);
    await look();
    expect(await look()).toMatchObject({ kind: 'requeue', afterMs: (options.leaseSeconds * 1000) / 3 });
  });

  it('that has stopped says so once', async () => {
    putNode('a', FAILED);
    putNode('b', STAGED);
    await look();
    expect(verdict('Updating')).toBe('False RolloutStopped');
    expect(operator.events).toEqual([
      [
        'Warning',
        'worker',
        'RolloutStopped',
        expect.stringMatching(/^Pool worker: the rollout has stopped: /),
      ],
    ]);
    await look();
    expect(operator.events).toHaveLength(1);
    expect(grantOf('b')).toBeUndefined();
  });

  it('rests for a moment after each look at many nodes, in which their events come together', async () => {
    for (let index = 0; index < 100; index += 1) putNode(`n${index}`, STAGED);
    expect(await look()).toMatchObject({ restMs: 5 });
  });

  it('writes counts alone no sooner than two seconds after the last status', async () => {
    for (const name of ['a', 'b', 'c']) putNode(name, STAGED);
    putPool({}, { paused: true });
    await look();
    putNode('a', UPDATED);
    operator.catchUp();
    now += 500;
    expect(await controller.reconcile('worker', signal)).toMatchObject({ kind: 'requeue', afterMs: 1_500 });
    expect(pool().status?.updatedMachineCount).toBe(0);
    now += 1_500;
    await controller.reconcile('worker', signal);
    expect(pool().status?.updatedMachineCount).toBe(1);
  });
});

it('a paused pool stages ahead where it is asked to, and takes nothing further until it is resumed', async () => {
  putPool({ [annotations.prefetch]: 'true' }, { paused: true });
  putNode('a', runs(OLD), { configVersion: { desired: OLD } });
  await look();
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
  putNode('a', STAGED);
  await look();
  await look();
  expect(grantOf('a')).toBeUndefined();
  expect(pool().status?.conditions?.find(({ type }) => type === 'Updating')?.message).toBe(
    `The pool is paused; 0 of 1 node runs ${NEW}; 1 node has staged it`,
  );
  putPool({ [annotations.prefetch]: 'true' });
  await look();
  expect(grantOf('a')).toBe('Live');
});

it('a pool counts the nodes that have their pinned images, for as long as any has to keep some', async () => {
  const sets = [{ name: 'till', generation: 1 }];
  const has = { pinnedImageSets: [{ name: 'till', desiredGeneration: 1, currentGeneration: 1 }] };
  putNode('a', { ...UPDATED, ...has }, { pinnedImages: { sets } });
  putNode('b', UPDATED, { pinnedImages: { sets } });
  await look();
  const counts = () => pool().status?.poolSynchronizersStatus?.map((each) => each.updatedMachineCount);
  expect(counts()).toEqual([1]);
  putNode('b', { ...UPDATED, ...has }, { pinnedImages: { sets } });
  await look();
  expect(counts()).toEqual([2]);
  for (const name of ['a', 'b']) putNode(name, UPDATED);
  await look();
  expect(counts()).toBeUndefined();
});

it('a pool that is gone is counted no more', async () => {
  putNode('a', STAGED);
  await look();
  expect(pools).toEqual({ worker: 1 });
  cluster.remove(MachineConfigPools, 'worker');
  operator.catchUp();
  expect(await controller.reconcile('worker', signal)).toEqual({ kind: 'done' });
  expect(pools).toEqual({});
});

describe('rolling back', () => {
  it('on request records what it was rolled back from, and says so once', async () => {
    putPool({ [annotations.rollback]: JSON.stringify({ config: OLD, by: 'ann', reason: 'fan' }) });
    putNode('a', UPDATED);
    await look();
    expect(held()).toMatchObject({ config: OLD, by: 'ann', from: { config: NEW, layered: false } });
    expect(operator.events).toEqual([
      ['Normal', 'worker', 'RollingBack', `Rolling back to ${OLD}: rolled back by ann: fan`],
    ]);
    await look();
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
    expect(operator.events).toHaveLength(1);
  });

  it('ends when the pool has another target, which takes the annotation away', async () => {
    const from = { config: 'rendered-worker-0', layered: false };
    putPool({ [annotations.rollback]: JSON.stringify({ config: OLD, from }) });
    putNode('a', STAGED);
    await look();
    expect(held()).toBeUndefined();
    expect(operator.events).toEqual([
      ['Normal', 'worker', 'RollbackOver', `The rollback has ended: the pool's target is now ${NEW}`],
    ]);
  });

  it('happens automatically where the pool says so and its rollout has stopped', async () => {
    putPool({ [annotations.autoRollback]: 'true' });
    putNode('a', FAILED);
    await look();
    expect(held()).toMatchObject({
      config: OLD,
      by: 'shale',
      at: new Date(now).toISOString(),
      reason: expect.stringMatching(/1 node failed/),
    });
    expect(reasons()).toContain('Warning worker RollingBack');
    await look();
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
  });

  it('to what does not exist stops everything and says why', async () => {
    putPool({ [annotations.rollback]: JSON.stringify({ config: 'rendered-worker-9' }) });
    putNode('a', STAGED);
    await look();
    expect(verdict('Degraded')).toBe('True Degraded');
    expect(grantOf('a')).toBeUndefined();
    expect(operator.events).toEqual([]);
  });
});

describe('a node with a startup taint', () => {
  const OTHER = { key: 'example.com/gpu', value: 'yes', effect: 'NoExecute' };

  function putNew(status: typeof UPDATED | typeof STAGED): void {
    putNode('new', status);
    const creationTimestamp = new Date(START).toISOString();
    const metadata = { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' }, creationTimestamp };
    const taints = [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }, OTHER];
    cluster.put(Nodes, aNode('new', { metadata, spec: { taints } }));
  }

  it('loses it, and no other, once it runs the target, and is marked as in service', async () => {
    putNew(UPDATED);
    await look();
    const node = cluster.get(Nodes, 'new');
    expect(node?.spec?.taints).toEqual([OTHER]);
    expect(node?.metadata.annotations?.[annotations.inService]).toBe('true');
    expect(reasons()).toContain('Normal new Configured');
    expect(verdict('NewNodesWaiting')).toBe('undefined undefined');
  });

  it('keeps it in a paused pool, which says why, and is reported once when it is overdue', async () => {
    putPool({}, { paused: true });
    putNew(STAGED);
    await look();
    expect(verdict('NewNodesWaiting')).toBe('True BeingConfigured');
    now = START + options.newNodeReportAfterSeconds * 1000;
    await look();
    await look();
    expect(verdict('NewNodesWaiting')).toBe('True Overdue');
    expect(reasons().filter((each) => each === 'Warning new NotConfigured')).toHaveLength(1);
    expect(operator.events.at(-1)?.[3]).toMatch(/still has its startup taint: the pool is paused$/);
    expect(cluster.get(Nodes, 'new')?.spec?.taints).toHaveLength(2);
    putPool();
    putNew(UPDATED);
    await look();
    expect(cluster.get(Nodes, 'new')?.spec?.taints).toEqual([OTHER]);
  });
});
