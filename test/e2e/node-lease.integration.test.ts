/** The exclusive right to disrupt a node, as it is shared with medik8s' operators. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lease, Leases, type Node, Nodes, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { createInformer } from '../../cluster/informer.ts';
import { REBOOT, RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { log, seen } from './cluster-under-test.ts';
import { blockDrain } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const stop = new AbortController();
const TEST_MS = { timeout: patience(90_000) };
/** As medik8s' common lease has it: pkg/lease, defaultLeaseNs and generateLeaseName. */
const namespace = 'medik8s-leases';
const leaseName = (node: string) => `node-${node}`;
let fleet: FleetUnderTest;
let watching: Promise<unknown>;
/** What became so at which version of the cluster. */
const turns: { readonly what: string; readonly version: bigint }[] = [];

beforeAll(async () => {
  fleet = await startFleetUnderTest(signal, {
    // Short, so that a test sees it renewed.
    leases: { seconds: 6 },
    drain: { retrySeconds: { min: 0.05, max: 0.5 } },
  });
  const leases = createInformer(fleet.client, Leases, { namespace, log });
  leases.onChange(({ type, object }) => noteTurn(`${type} ${object.metadata.name}`, object));
  const nodes = createInformer(fleet.client, Nodes, { log });
  nodes.onChange(({ object, ...change }) => {
    const was = 'old' in change ? change.old?.spec?.unschedulable === true : false;
    const is = object.spec?.unschedulable === true;
    if (is !== was) noteTurn(`${is ? 'cordon' : 'uncordon'} ${object.metadata.name}`, object);
  });
  watching = Promise.all([leases.start(stop.signal), nodes.start(stop.signal)]);
  await Promise.all([leases.synced(), nodes.synced()]);
  // In a cluster of one node nothing is drained.
  await fleet.addPool('elsewhere');
  await fleet.addNode('elsewhere-0', 'elsewhere');
}, patience(90_000));
afterAll(async () => {
  stop.abort();
  await watching;
  await fleet.stop();
});

function noteTurn(what: string, { metadata }: Lease | Node): void {
  turns.push({ what, version: BigInt(metadata.resourceVersion ?? '0') });
}

/** @returns the version at which that became so for the last time. */
const turn = (what: string) => turns.findLast((found) => found.what === what)?.version ?? -1n;
const leaseOf = (node: string) => fleet.client.find(Leases, leaseName(node), { namespace, signal });
const mcnOf = (node: string) => fleet.client.get(MachineConfigNodes, node, { signal });

/** @returns the node's lease once that holds. */
async function leaseSeen(node: string, holds: (lease: Lease) => boolean): Promise<Lease | undefined> {
  let last: Lease | undefined;
  const look = async () => {
    last = await leaseOf(node);
    return last !== undefined && holds(last);
  };
  await expect.poll(look, { timeout: patience(60_000) }).toBe(true);
  return last;
}

const isGone = (node: string) =>
  expect.poll(() => leaseOf(node), { timeout: patience(60_000) }).toBeUndefined();

/** Another operator has the lease from now on, as if ours had let it run out. */
async function steal(node: string): Promise<void> {
  const now = new Date().toISOString().replace('Z', '000Z');
  const body = {
    spec: {
      holderIdentity: 'self-node-remediation',
      acquireTime: now,
      renewTime: now,
      leaseDurationSeconds: 3600,
    },
  };
  await fleet.client.patch(Leases, leaseName(node), { type: 'merge', body }, { namespace, signal });
}

const giveBack = (node: string) => fleet.client.delete(Leases, leaseName(node), { namespace, signal });

test(
  'a node is leased before it is cordoned, and given back after it is schedulable again',
  TEST_MS,
  async () => {
    await fleet.addPool('order');
    await fleet.addNode('order-0', 'order', { script: { waitsBefore: 'acting' } });
    // That of its first update.
    await isGone('order-0');
    const config = await fleet.change('order', 'next');
    const first = await leaseSeen('order-0', ({ spec }) => spec?.holderIdentity === 'shale-operator');
    expect(first?.spec).toMatchObject({ leaseDurationSeconds: 6, leaseTransitions: 0 });
    await seen(fleet.client, MachineConfigNodes, 'order-0', ({ spec }) => spec.grant !== undefined);
    const renewed = await leaseSeen('order-0', ({ spec }) => spec?.renewTime !== first?.spec?.renewTime);
    expect(renewed?.spec?.acquireTime).toBe(first?.spec?.acquireTime);
    fleet.script('order-0', {});
    await fleet.runs('order-0', config);
    await isGone('order-0');
    const isOver = () => turn('DELETED node-order-0') > turn('ADDED node-order-0');
    await expect.poll(isOver, { timeout: patience(60_000) }).toBe(true);
    const order = ['ADDED node-order-0', 'cordon order-0', 'uncordon order-0', 'DELETED node-order-0'];
    const versions = order.map(turn);
    expect(versions).toEqual(versions.toSorted((a, b) => (a < b ? -1 : 1)));
  },
);

test('a live update is made under the lease too, without a cordon', TEST_MS, async () => {
  await fleet.addPool('live');
  await fleet.addNode('live-0', 'live', { script: { actions: RESTART, waitsBefore: 'acting' } });
  const config = await fleet.change('live', 'next');
  await seen(fleet.client, MachineConfigNodes, 'live-0', ({ spec }) => spec.grant?.level === 'Live');
  expect((await leaseOf('live-0'))?.spec?.holderIdentity).toBe('shale-operator');
  fleet.script('live-0', { actions: RESTART });
  await fleet.runs('live-0', config);
  await isGone('live-0');
  expect(turn('cordon live-0')).toBe(-1n);
});

test(
  'a lease that is lost in the middle of a drain stops it, and it goes on when the lease is free',
  TEST_MS,
  async () => {
    await fleet.addPool('drained');
    await fleet.addNode('drained-0', 'drained');
    await blockDrain(fleet.client, 'drained-0', signal);
    const config = await fleet.change('drained', 'next');
    await fleet.poolSays('drained', 'Updating', /default\/held-drained-0 can't be evicted/);
    await steal('drained-0');
    await fleet.poolSays(
      'drained',
      'Updating',
      /drained-0: skipped: its lease is held by self-node-remediation/,
    );
    await fleet.client.delete(PodDisruptionBudgets, 'held-drained-0', { namespace: 'default', signal });
    // What it says of the pause it says after it has looked at the node once more.
    await fleet.pause('drained', true);
    await fleet.poolSays('drained', 'Updating', /Paused/);
    expect((await mcnOf('drained-0')).spec.grant).toBeUndefined();
    expect(await fleet.client.find(Pods, 'held-drained-0', { namespace: 'default', signal })).toBeDefined();
    expect((await leaseOf('drained-0'))?.spec?.holderIdentity).toBe('self-node-remediation');
    await fleet.pause('drained', false);
    await giveBack('drained-0');
    await fleet.runs('drained-0', config);
    expect((await fleet.client.get(Nodes, 'drained-0', { signal })).spec?.unschedulable).toBeUndefined();
  },
);

test.each([
  ['a reboot', 'reboots', REBOOT],
  ['a live update', 'restarts', RESTART],
])(
  'the grant for %s is withdrawn when the lease is lost, and granted again',
  TEST_MS,
  async (_what, pool, actions) => {
    const node = `${pool}-0`;
    await fleet.addPool(pool);
    await fleet.addNode(node, pool, { script: { actions, waitsBefore: 'acting' } });
    const config = await fleet.change(pool, 'next');
    await seen(fleet.client, MachineConfigNodes, node, ({ spec }) => spec.grant !== undefined);
    await steal(node);
    await seen(fleet.client, MachineConfigNodes, node, ({ spec }) => spec.grant === undefined);
    await fleet.poolSays(
      pool,
      'Updating',
      /lost its lease to self-node-remediation|its lease is held by self-node-remediation/,
    );
    fleet.script(node, { actions });
    expect((await mcnOf(node)).status?.configVersion?.current).not.toBe(config);
    await giveBack(node);
    await fleet.runs(node, config);
    await isGone(node);
  },
);

test(
  "another's lease that looks expired is left to it until it was seen unchanged for its time",
  TEST_MS,
  async () => {
    await fleet.addPool('expired');
    await fleet.addNode('expired-0', 'expired');
    await isGone('expired-0');
    const longAgo = '2026-01-01T00:00:00.000000Z';
    const spec = {
      holderIdentity: 'node-healthcheck',
      leaseDurationSeconds: 3,
      acquireTime: longAgo,
      renewTime: longAgo,
    };
    const metadata = { name: leaseName('expired-0') };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    await fleet.client.create(Leases, lease, { namespace, signal });
    const config = await fleet.change('expired', 'next');
    await fleet.poolSays('expired', 'Updating', /expired-0: skipped: its lease is held by node-healthcheck/);
    fleet.script('expired-0', { waitsBefore: 'acting' });
    // No change of an object wakes the operator, which checks every half minute by itself.
    const nudge = setInterval(() => void fleet.annotatePool('expired', { nudged: String(Date.now()) }), 500);
    const taken = await leaseSeen('expired-0', (now) => now.spec?.holderIdentity === 'shale-operator');
    clearInterval(nudge);
    expect(taken?.spec?.leaseTransitions).toBe(1);
    fleet.script('expired-0', {});
    await fleet.runs('expired-0', config);
  },
);

test.each([
  ['its pool is paused', 'paused', () => fleet.pause('paused', true)],
  ['its Node is deleted', 'deleted', () => fleet.client.delete(Nodes, 'deleted-0', { signal })],
  [
    'no pool has it any more',
    'left',
    () => fleet.patchNode('left-0', { metadata: { labels: { pool: null } } }),
  ],
])(
  'the lease of a node that is being drained is given back when %s, and its cordon with it',
  TEST_MS,
  async (_when, pool, happen) => {
    const node = `${pool}-0`;
    await fleet.addPool(pool);
    await fleet.addNode(node, pool);
    await blockDrain(fleet.client, node, signal);
    await fleet.change(pool, 'next');
    await fleet.poolSays(pool, 'Updating', /can't be evicted/);
    const { metadata } = await fleet.client.get(Nodes, node, { signal });
    expect(metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBe('true');
    await happen();
    await isGone(node);
    const left = await fleet.client.find(Nodes, node, { signal });
    expect(left?.spec?.unschedulable).toBeUndefined();
    expect(left?.metadata.annotations?.[annotations.cordonedByShale]).toBeUndefined();
    expect(left?.metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBeUndefined();
  },
);

test(
  'the lease of a node that is being drained is given back when it is flagged for maintenance, and its cordon after that',
  TEST_MS,
  async () => {
    const [pool, node] = ['flagged', 'flagged-0'];
    await fleet.addPool(pool);
    await fleet.addNode(node, pool);
    await blockDrain(fleet.client, node, signal);
    await fleet.change(pool, 'next');
    await fleet.poolSays(pool, 'Updating', /can't be evicted/);
    await annotate(node, annotations.plannedMaintenance, { by: 'ann', reason: 'fan' });
    await isGone(node);
    // Whoever works on it counts on the cordon.
    const held = await fleet.client.get(Nodes, node, { signal });
    expect(held.spec?.unschedulable).toBe(true);
    expect(held.metadata.annotations?.[annotations.cordonedByShale]).toBeDefined();

    await fleet.pause(pool, true);
    await annotate(node, annotations.plannedMaintenance, null);
    const isFree = async () => {
      const { spec, metadata } = await fleet.client.get(Nodes, node, { signal });
      return (
        spec?.unschedulable !== true && metadata.annotations?.['karpenter.sh/do-not-disrupt'] === undefined
      );
    };
    await expect.poll(isFree, { timeout: patience(60_000) }).toBe(true);
  },
);

const annotate = (node: string, name: string, value: object | null) =>
  fleet.patchNode(node, {
    metadata: { annotations: { [name]: value && JSON.stringify(value) } },
  });
