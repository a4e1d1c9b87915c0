import { beforeEach, describe, expect, it } from 'vitest';
import { Leases, Nodes, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { ApiError } from '../../cluster/api-client.ts';
import type { Write } from '../../test/fixtures/fleet/memory-cluster.ts';
import { NEW, RolloutOfPool, STAGED, UPDATED, WORKER } from '../../test/fixtures/fleet/rollout-of-pool.ts';
import { aNode, REBOOT } from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions as options } from '../options.ts';

const TOO_LONG = 'Node "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes';
const MORE_THAN_ONE =
  'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
const REBOOTS = {
  ...STAGED,
  plan: { config: NEW, staged: true, actions: [...REBOOT], causes: [], source: 'label' },
};

let world: RolloutOfPool;

beforeEach(() => {
  world = new RolloutOfPool();
});

const refusing = (is: (write: Write, name: string) => boolean, status: number, message: string) => {
  world.cluster.trouble = (name, write) =>
    is(write, name) ? new ApiError(status, `${write.verb} ${write.kind} ${name}`, { message }) : 'none';
};
const looks = async (count: number) => {
  for (let look = 0; look < count; look += 1) await world.look().catch(() => undefined);
};
const message = (type: string) =>
  world.pool().status?.conditions?.find((each) => each.type === type)?.message ?? '';
const conditionOfNode = (of: string) =>
  world.cluster.get(MachineConfigNodes, 'a')?.status?.conditions?.find(({ type }) => type === of);
const leases = () => world.cluster.list(Leases).map(({ metadata }) => metadata.name);
const isCordon = ({ kind, paths }: Write) => kind === 'Node' && paths.includes('spec.unschedulable=true');

/** A pod of a ReplicaSet on node a. */
function putPod(name: string): void {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'o', uid: 'u', controller: true };
  world.cluster.put(Pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'aaa', ownerReferences: [owner] },
    spec: { nodeName: 'a', containers: [] },
  });
}

// mco-1404
describe('a Node at its limit of annotations', () => {
  beforeEach(() => {
    for (const name of ['a', 'b', 'c']) world.putNode(name, REBOOTS);
    refusing((write, name) => isCordon(write) && name === 'a', 422, TOO_LONG);
  });

  it('is named with the reason by pool, status and event, and nothing is held meanwhile', async () => {
    await looks(6);
    expect(world.verdict('Degraded')).toBe('True Degraded');
    const why = `carrying out its update fails: patch Node a: ${TOO_LONG}`;
    expect(message('Degraded')).toBe(`Node a: ${why}`);
    expect(message('Stalled')).toBe(`Node a: ${why}`);
    expect(message('Updating')).toContain(`a: ${why}`);
    expect(world.pool().status?.failingSteps).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Node',
        name: 'a',
        step: 'carrying out its update',
        reason: 'Refused',
        message: `patch Node a: ${TOO_LONG}`,
        since: expect.stringMatching(/^2026-06-01T00:00:10Z$/),
      },
    ]);
    expect(world.operator.events.filter(([, , reason]) => reason === 'StepFailing')).toEqual([
      ['Warning', 'a', 'StepFailing', `C${why.slice(1)}`],
    ]);
    expect(leases()).toEqual([]);
    expect(world.cluster.get(Nodes, 'a')?.spec?.unschedulable).toBeUndefined();
    expect(conditionOfNode('StepsFailing')).toMatchObject({
      status: 'True',
      reason: 'Refused',
      message: why,
    });
    expect(conditionOfNode('Stalled')).toMatchObject({ status: 'True', message: why });
  });

  it('takes its share of maxUnavailable: with two, one more node is started and no third', async () => {
    world.putPool({}, { maxUnavailable: 2 });
    await looks(12);
    const cordoned = world.cluster
      .list(Nodes)
      .filter(({ spec }) => spec?.unschedulable === true)
      .map(({ metadata }) => metadata.name);
    expect(cordoned).toEqual(['b']);
    expect(leases()).toEqual(['node-b']);
  });

  it('goes on once it can be written, and the pool says nothing of it any more', async () => {
    await looks(6);
    world.cluster.trouble = () => 'none';
    await looks(8);
    expect(world.grantOf('a')).toBe('Disrupt');
    expect(world.verdict('Degraded')).toBe('False AsExpected');
    expect(world.pool().status?.failingSteps).toBeUndefined();
    expect(conditionOfNode('StepsFailing')).toBeUndefined();
    expect(conditionOfNode('Stalled')?.status).toBe('False');
  });

  it('is over when the pool is paused', async () => {
    await looks(6);
    world.putPool({}, { paused: true });
    await looks(2);
    expect(world.verdict('Degraded')).toBe('False AsExpected');
  });

  it('is known to the operator that starts next from the status of the pool', async () => {
    await looks(6);
    const status = world.pool().status;
    const next = new RolloutOfPool();
    next.now = world.now;
    for (const name of ['a', 'b', 'c']) next.putNode(name, REBOOTS);
    next.cluster.put(MachineConfigPools, { ...next.pool(), status: status ?? {} });
    world = next;
    refusing((write, name) => isCordon(write) && name === 'a', 422, TOO_LONG);
    await looks(1);
    expect(world.verdict('Degraded')).toBe('True Degraded');
    expect(world.pool().status?.failingSteps?.[0]?.since).toBe(status?.failingSteps?.[0]?.since);
    expect(world.reasons()).not.toContain('Warning a StepFailing');
  });
});

it('a lease stays where it is unknown whether the node was cordoned, and the pool says who holds it', async () => {
  world.putNode('a', REBOOTS);
  refusing(isCordon, 504, 'Timeout: request did not complete within requested timeout');
  await looks(2);
  expect(leases()).toEqual(['node-a']);
  expect(message('Updating')).toMatch(
    /a: carrying out its update fails: .*; shale-operator holds its lease meanwhile/,
  );
});

it('a write on one node that fails costs no other what was decided for it', async () => {
  world.putNode('a', REBOOTS);
  world.putNode('done', UPDATED, {
    grant: { level: 'Disrupt', config: NEW, leaseHolder: options.leases.holder },
  });
  const metadata = { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' } };
  world.putNode('new', UPDATED);
  world.cluster.put(
    Nodes,
    aNode('new', { metadata, spec: { taints: [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }] } }),
  );
  world.cluster.put(Nodes, aNode('unknown', { metadata: { name: 'unknown', labels: { [WORKER]: '' } } }));
  refusing(
    (write, name) => isCordon(write) || (write.kind === 'MachineConfigNode' && name === 'unknown'),
    403,
    'no',
  );
  await looks(1);
  expect(world.grantOf('done')).toBeUndefined();
  expect(world.cluster.get(Nodes, 'new')?.spec?.taints).toBeUndefined();
  await looks(4);
  expect(message('Degraded')).toMatch(/^Node a: .*; Node unknown: creating its MachineConfigNode fails: /);
});

// kubernetes-75957, aks-4720
describe('a drain', () => {
  beforeEach(() => {
    world.putNode('a', REBOOTS);
    world.putNode('b', UPDATED);
    for (let index = 0; index < 12; index += 1) putPod(`a-multi-${index}`);
    for (let index = 0; index < 3; index += 1) putPod(`z-${index}`);
  });

  const reported = options.drain.reportAfterSeconds / 10;

  it('evicts what it can, names what it can’t, and is Degraded once it takes too long', async () => {
    refusing(({ verb }, name) => verb === 'evict' && name.startsWith('a-multi'), 500, MORE_THAN_ONE);
    await looks(2);
    expect(world.cluster.list(Pods).map(({ metadata }) => metadata.name)).not.toContain('z-0');
    const drained = () => conditionOfNode('Drained');
    expect(drained()).toMatchObject({ status: 'Unknown', reason: 'DrainBlocked' });
    expect(drained()?.message).toContain(`pod aaa/a-multi-0 can't be evicted: ${MORE_THAN_ONE}`);
    expect(world.verdict('Degraded')).toBe('False AsExpected');
    await looks(reported + 1);
    expect(world.verdict('Degraded')).toBe('True Degraded');
    expect(message('Degraded')).toContain(MORE_THAN_ONE);
    expect(world.reasons().filter((each) => each === 'Warning a DrainBlocked')).toHaveLength(1);
    world.cluster.trouble = () => 'none';
    await looks(7);
    expect(world.grantOf('a')).toBe('Disrupt');
    expect(world.verdict('Degraded')).toBe('False AsExpected');
  });

  it.each([
    ['evictions', ({ verb }: Write) => verb === 'evict'],
    [
      'the node’s conditions',
      ({ verb, kind }: Write) => verb === 'replaceStatus' && kind === 'MachineConfigNode',
    ],
    ['leases', ({ kind }: Write) => kind === 'Lease'],
  ])('stays Degraded when another answer follows, or another write fails: %s', async (_what, also) => {
    const evicts = ({ verb }: Write) => verb === 'evict';
    refusing(evicts, 429, 'ask again later');
    await looks(reported + 3);
    expect(world.verdict('Degraded')).toBe('True Degraded');
    refusing((write) => evicts(write) || also(write), 500, 'failed calling webhook');
    for (let look = 0; look < 12; look += 1) {
      await looks(1);
      expect(world.verdict('Degraded')).toBe('True Degraded');
    }
  });
});

it('a pool whose nodes can’t be read says so, and keeps the rest of its status', async () => {
  world.putNode('a', STAGED);
  await looks(1);
  const before = world.pool().status?.machineCount;
  const list = world.operator.leases.holding.bind(world.operator.leases);
  world.operator.leases.holding = () => {
    throw new ApiError(403, 'list nodemaintenances', { message: 'forbidden' });
  };
  await looks(4);
  expect(message('Degraded')).toBe('reading its nodes fails: list nodemaintenances: forbidden');
  expect(message('Stalled')).toBe(message('Degraded'));
  expect(world.pool().status?.machineCount).toBe(before);
  world.operator.leases.holding = list;
  await looks(2);
  expect(world.verdict('Degraded')).toBe('False AsExpected');
});
