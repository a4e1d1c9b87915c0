import { beforeEach, describe, expect, it } from 'vitest';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import {
  FAILED,
  NEW,
  OLD,
  RolloutOfPool,
  runs,
  STAGED,
  START,
  UPDATED,
} from '../../test/fixtures/fleet/rollout-of-pool.ts';
import { aRecord, aRenderedConfig } from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions as options } from '../options.ts';

const signal = new AbortController().signal;

let world: RolloutOfPool;

beforeEach(() => {
  world = new RolloutOfPool();
});

describe('a write that fails', () => {
  it('is reported to the caller after everything else was done, the status included', async () => {
    world.putNode('a', STAGED, { configVersion: { desired: OLD } });
    world.putNode('b', STAGED, { configVersion: { desired: OLD } });
    world.operator.catchUp();
    let writes = 0;
    world.cluster.trouble = () => {
      writes += 1;
      return writes === 1 ? 'unavailable' : 'none';
    };
    await expect(world.controller.reconcile('worker', signal)).rejects.toMatchObject({
      errors: [{ status: 503 }],
    });
    const desired = ['a', 'b'].map(
      (name) => world.cluster.get(MachineConfigNodes, name)?.spec.configVersion.desired,
    );
    expect(desired.toSorted()).toEqual([OLD, NEW]);
    expect(world.verdict('Updating')).toBe('True NodesUpdating');
    expect(world.pools).toEqual({ worker: 2 });
    world.cluster.trouble = () => 'none';
    await world.look();
    expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
  });

  it('of the record gives no node a new target, and what is under way goes on', async () => {
    for (const { metadata } of world.cluster.list(PoolRevisions))
      world.cluster.remove(PoolRevisions, metadata.name);
    world.putNode('a', STAGED, { configVersion: { desired: OLD } });
    world.putNode('b', UPDATED, { grant: { level: 'Live', config: NEW, leaseHolder: 'shale' } });
    world.operator.catchUp();
    world.cluster.trouble = (name) => (name.startsWith('worker-') ? 'unavailable' : 'none');
    await expect(world.controller.reconcile('worker', signal)).rejects.toMatchObject({
      errors: [{ status: 503 }],
    });
    expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
    for (let index = 0; index < 5; index += 1) await world.look().catch(() => undefined);
    expect(world.grantOf('a')).toBeUndefined();
    expect(world.grantOf('b')).toBeUndefined();
    world.cluster.trouble = () => 'none';
    await world.look();
    expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
    expect(world.cluster.list(PoolRevisions).map(({ spec }) => spec.machineConfig.name)).toEqual([OLD, NEW]);
  });

  it('of several nodes is reported as all of them', async () => {
    for (const name of ['a', 'b']) world.putNode(name, STAGED, { configVersion: { desired: OLD } });
    world.operator.catchUp();
    let writes = 0;
    world.cluster.trouble = () => {
      writes += 1;
      return writes <= 2 ? 'unavailable' : 'none';
    };
    await expect(world.controller.reconcile('worker', signal)).rejects.toMatchObject({
      errors: [{ status: 503 }, { status: 503 }],
    });
  });
});

describe('the record of a pool', () => {
  const owners = () =>
    world.cluster
      .list(PoolRevisions)
      .filter(({ spec }) => spec.machineConfig.name === NEW)
      .map(({ metadata }) =>
        metadata.ownerReferences?.map(({ kind, controller = false }) => [kind, controller]),
      );

  it('has an owner that outlives the pool, so that its history stays', async () => {
    for (const { metadata } of world.cluster.list(PoolRevisions))
      world.cluster.remove(PoolRevisions, metadata.name);
    world.cluster.put(MachineConfigurations, {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION, uid: 'uid-of-configuration' },
      spec: {},
    });
    await world.look();
    expect(owners()).toEqual([
      [
        ['MachineConfigPool', true],
        ['MachineConfiguration', false],
      ],
    ]);
  });

  it('of pools that are gone does not stay for ever', async () => {
    const earlier = { ...world.pool(), metadata: { ...world.pool().metadata, uid: 'earlier' } };
    const left = Array.from({ length: 53 }, (_, index) => ({ config: `rendered-worker-left-${index}` }));
    for (const revision of aRecord(earlier, ...left)) world.cluster.put(PoolRevisions, revision);
    await world.look();
    const kept = world.cluster.list(PoolRevisions).map(({ spec }) => spec.machineConfig.name);
    expect(kept.toSorted()).toEqual([OLD, NEW, ...left.slice(3).map(({ config }) => config)].toSorted());
  });
});

describe('a rollout', () => {
  it('ends with an event and a span, and needs no further look', async () => {
    world.putNode('a', STAGED);
    await world.look();
    expect(world.grantOf('a')).toBe('Live');
    expect(world.verdict('Updating')).toBe('True NodesUpdating');
    expect(world.reasons()).toEqual([]);
    world.putNode('a', UPDATED);
    await world.look();
    expect(world.verdict('Updated')).toBe('True AllNodesUpdated');
    expect(world.pool().status?.configuration?.name).toBe(NEW);
    expect(world.operator.events).toContainEqual(['Normal', 'worker', 'Completed', `All nodes run ${NEW}`]);
    expect(world.spans).toMatchObject([
      { name: 'rollout', attributes: { 'shale.pool': 'worker', 'shale.config': NEW, 'shale.nodes': 1 } },
    ]);
    await world.look();
    expect(await world.look()).toMatchObject({ kind: 'done' });
    expect(world.reasons().filter((reason) => reason.endsWith('Completed'))).toHaveLength(1);
    expect(world.spans).toHaveLength(1);
  });

  it('is traced from when its config was rendered, where nodes were outstanding before', async () => {
    const config = world.cluster.get(MachineConfigs, NEW) ?? aRenderedConfig(NEW);
    const creationTimestamp = new Date(START + 15_000).toISOString();
    world.cluster.put(MachineConfigs, { ...config, metadata: { ...config.metadata, creationTimestamp } });
    world.putNode('a', STAGED);
    await world.look();
    world.putNode('a', UPDATED);
    await world.look();
    expect(world.spans).toMatchObject([{ startedAt: START + 15_000, endedAt: START + 20_000 }]);
  });

  it('looks again in time to renew its leases', async () => {
    world.putNode('a', STAGED);
    await world.look();
    expect(await world.look()).toMatchObject({
      kind: 'requeue',
      afterMs: (options.leases.seconds * 1000) / 3,
    });
  });

  it('that has stopped says so once', async () => {
    world.putNode('a', FAILED);
    world.putNode('b', STAGED);
    await world.look();
    expect(world.verdict('Updating')).toBe('False RolloutStopped');
    expect(world.operator.events).toEqual([
      [
        'Warning',
        'worker',
        'RolloutStopped',
        expect.stringMatching(/^Pool worker: the rollout has stopped: /),
      ],
    ]);
    await world.look();
    expect(world.operator.events).toHaveLength(1);
    expect(world.grantOf('b')).toBeUndefined();
  });

  it('rests for a moment after each look at many nodes, in which their events come together', async () => {
    for (let index = 0; index < 100; index += 1) world.putNode(`n${index}`, STAGED);
    expect(await world.look()).toMatchObject({ restMs: 5 });
  });

  it('writes counts alone no sooner than two seconds after the last status', async () => {
    for (const name of ['a', 'b', 'c']) world.putNode(name, STAGED);
    world.putPool({}, { paused: true });
    await world.look();
    world.putNode('a', UPDATED);
    world.operator.catchUp();
    world.now += 500;
    expect(await world.controller.reconcile('worker', signal)).toMatchObject({
      kind: 'requeue',
      afterMs: 1_500,
    });
    expect(world.pool().status?.updatedMachineCount).toBe(0);
    world.now += 1_500;
    await world.controller.reconcile('worker', signal);
    expect(world.pool().status?.updatedMachineCount).toBe(1);
  });
});

it('a paused pool stages ahead where it is asked to, and takes nothing further until it is resumed', async () => {
  world.putPool({}, { paused: true, shale: { prefetch: true } });
  world.putNode('a', runs(OLD), { configVersion: { desired: OLD } });
  await world.look();
  expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(NEW);
  world.putNode('a', STAGED);
  await world.look();
  await world.look();
  expect(world.grantOf('a')).toBeUndefined();
  expect(world.pool().status?.conditions?.find(({ type }) => type === 'Updating')?.message).toBe(
    `The pool is paused; 0 of 1 node runs ${NEW}; 1 node has staged it`,
  );
  world.putPool({}, { shale: { prefetch: true } });
  await world.look();
  expect(world.grantOf('a')).toBe('Live');
});

it('a pool counts the nodes that have their pinned images, for as long as any has to keep some', async () => {
  const sets = [{ name: 'till', generation: 1 }];
  const has = { pinnedImageSets: [{ name: 'till', desiredGeneration: 1, currentGeneration: 1 }] };
  world.putNode('a', { ...UPDATED, ...has }, { pinnedImages: { sets } });
  world.putNode('b', UPDATED, { pinnedImages: { sets } });
  await world.look();
  const counts = () => world.pool().status?.poolSynchronizersStatus?.map((each) => each.updatedMachineCount);
  expect(counts()).toEqual([1]);
  world.putNode('b', { ...UPDATED, ...has }, { pinnedImages: { sets } });
  await world.look();
  expect(counts()).toEqual([2]);
  for (const name of ['a', 'b']) world.putNode(name, UPDATED);
  await world.look();
  expect(counts()).toBeUndefined();
});

it('a pool that is gone is counted no more', async () => {
  world.putNode('a', STAGED);
  await world.look();
  expect(world.pools).toEqual({ worker: 1 });
  world.cluster.remove(MachineConfigPools, 'worker');
  world.operator.catchUp();
  expect(await world.controller.reconcile('worker', signal)).toEqual({ kind: 'done' });
  expect(world.pools).toEqual({});
});
