import { beforeEach, describe, expect, it } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import {
  FAILED,
  NEW,
  OLD,
  RolloutOfPool,
  STAGED,
  UPDATED,
} from '../../test/fixtures/fleet/rollout-of-pool.ts';

let world: RolloutOfPool;

beforeEach(() => {
  world = new RolloutOfPool();
});

const held = () => {
  const text = world.pool().metadata.annotations?.[annotations.rollback];
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
};

describe('rolling back', () => {
  it('on request records what it was rolled back from, and says so once', async () => {
    world.putPool({ [annotations.rollback]: JSON.stringify({ config: OLD, by: 'ann', reason: 'fan' }) });
    world.putNode('a', UPDATED);
    await world.look();
    expect(held()).toMatchObject({ config: OLD, by: 'ann', from: { config: NEW, layered: false } });
    expect(world.operator.events).toEqual([
      ['Normal', 'worker', 'RollingBack', `Rolling back to ${OLD}: rolled back by ann: fan`],
    ]);
    await world.look();
    expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
    expect(world.operator.events).toHaveLength(1);
  });

  it('ends when the pool has another target, which takes the annotation away', async () => {
    const from = { config: 'rendered-worker-0', layered: false };
    world.putPool({ [annotations.rollback]: JSON.stringify({ config: OLD, from }) });
    world.putNode('a', STAGED);
    await world.look();
    expect(held()).toBeUndefined();
    expect(world.operator.events).toEqual([
      ['Normal', 'worker', 'RollbackOver', `The rollback has ended: the pool's target is now ${NEW}`],
    ]);
  });

  it('happens automatically where the pool says so and its rollout has stopped', async () => {
    world.putPool({}, { shale: { autoRollback: true } });
    world.putNode('a', FAILED);
    await world.look();
    expect(held()).toMatchObject({
      config: OLD,
      by: 'shale',
      at: new Date(world.now).toISOString(),
      reason: expect.stringMatching(/1 node failed/),
    });
    expect(world.reasons()).toContain('Warning worker RollingBack');
    await world.look();
    expect(world.cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired).toBe(OLD);
  });

  it('to what does not exist stops everything and says why', async () => {
    world.putPool({ [annotations.rollback]: JSON.stringify({ config: 'rendered-worker-9' }) });
    world.putNode('a', STAGED);
    await world.look();
    expect(world.verdict('Degraded')).toBe('True Degraded');
    expect(world.grantOf('a')).toBeUndefined();
    expect(world.operator.events).toEqual([]);
  });
});
