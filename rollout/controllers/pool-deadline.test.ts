import { beforeEach, describe, expect, it } from 'vitest';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { NEW, OLD, RolloutOfPool, runs, STAGED, UPDATED } from '../../test/fixtures/fleet/rollout-of-pool.ts';
import { aRecord, aRenderedConfig, condition } from '../../test/fixtures/objects.ts';

/** A pool that is rolled back unless its change is confirmed: shale.dev/roll-back-unless-confirmed. */

const TEN_MINUTES = 600_000;
const ON_OLD = { ...runs(OLD), conditions: [condition('Updated')] };

let world: RolloutOfPool;
beforeEach(() => {
  world = new RolloutOfPool();
});

const deadline = (inMs = TEN_MINUTES, id = 'a') => ({
  [annotations.rollbackDeadline]: JSON.stringify({
    id,
    until: new Date(world.now + inMs).toISOString(),
    by: 'ann',
    reason: 'fan',
  }),
});
const annotated = () => world.pool().metadata.annotations ?? {};
const rollback = () => JSON.parse(annotated()[annotations.rollback] ?? 'null') as unknown;
const recorded = () => world.pool().status?.rollbackDeadline;
const desired = (node: string) => world.cluster.get(MachineConfigNodes, node)?.spec.configVersion.desired;

/** The pool with other annotations, and otherwise as it is. */
function annotate(set: Readonly<Record<string, string>>): void {
  const pool = world.pool();
  world.cluster.put(MachineConfigPools, { ...pool, metadata: { ...pool.metadata, annotations: set } });
}

/** The change has reached every node before its deadline. */
async function triedEverywhere(): Promise<void> {
  world.putPool(deadline());
  world.putNode('a', STAGED);
  await world.look();
  world.putNode('a', UPDATED);
  await world.look();
  expect(world.pool().status?.configuration?.name).toBe(NEW);
}

describe('until its deadline', () => {
  it('the change rolls out, and the status has what every node ran before it', async () => {
    await triedEverywhere();
    expect(recorded()).toEqual({ id: 'a', config: OLD });
    expect(world.verdict('ChangeTried')).toBe('True AwaitingConfirmation');
    expect(desired('a')).toBe(NEW);
    expect(rollback()).toBeNull();
  });

  it('the pool is looked at again when it passes, at the latest', async () => {
    world.putPool(deadline(30_000));
    world.putNode('a', ON_OLD);
    expect(await world.look()).toMatchObject({ afterMs: 20_000 });
  });

  it('it is confirmed by taking the annotation away', async () => {
    await triedEverywhere();
    annotate({});
    world.now += TEN_MINUTES;
    await world.look();
    expect(recorded()).toBeUndefined();
    expect(world.verdict('ChangeTried')).toBe('False NothingTried');
    expect(rollback()).toBeNull();
  });

  it('the record keeps what every node ran before it, however many targets have come since', async () => {
    await triedEverywhere();
    const since = Array.from({ length: 60 }, (_, index) => ({ config: `rendered-worker-since-${index}` }));
    for (const revision of aRecord(world.pool(), { config: OLD }, { config: NEW }, ...since))
      world.cluster.put(PoolRevisions, revision);
    await world.look();
    const kept = world.cluster.list(PoolRevisions).map(({ spec }) => spec.machineConfig.name);
    expect(kept).not.toContain('rendered-worker-since-0');
    expect(kept).toContain(OLD);
  });

  it('another one begins with what nodes run by then', async () => {
    await triedEverywhere();
    annotate(deadline(TEN_MINUTES, 'b'));
    await world.look();
    expect(recorded()).toEqual({ id: 'b', config: NEW });
  });
});

describe('at its deadline', () => {
  it('the pool is rolled back to the record, and held; nobody confirms in between', async () => {
    await triedEverywhere();
    world.now += TEN_MINUTES;
    await world.look();
    expect(annotated()[annotations.rollbackDeadline]).toBeUndefined();
    expect(rollback()).toMatchObject({
      config: OLD,
      by: 'shale',
      unconfirmed: 'a',
      reason: expect.stringMatching(/^the change of ann was not confirmed until .*: fan$/),
      from: { config: NEW, layered: false },
    });
    expect(world.reasons().at(-1)).toBe('Warning worker RollingBack');
    await world.look();
    expect(desired('a')).toBe(OLD);
    expect(recorded()).toBeUndefined();
    world.putNode(
      'a',
      { ...ON_OLD, configVersion: { current: OLD, desired: OLD } },
      {
        configVersion: { desired: OLD },
      },
    );
    await world.look();
    expect(world.verdict('Updated')).toBe('False RolledBack');
  });

  it('a change that is not rendered yet is held all the same, and what is rendered then', async () => {
    world.putPool(deadline(15_000), { configuration: { name: OLD } });
    world.putNode(
      'a',
      { ...ON_OLD, configVersion: { current: OLD, desired: OLD } },
      {
        configVersion: { desired: OLD },
      },
    );
    await world.look();
    const changed = aRenderedConfig('50-worker');
    const selected = {
      ...changed.metadata,
      labels: world.pool().spec.machineConfigSelector?.matchLabels ?? {},
    };
    world.cluster.put(MachineConfigs, { ...changed, metadata: selected });
    world.now += 15_000;
    await world.look();
    expect(annotated()[annotations.rollbackDeadline]).toBeUndefined();
    expect(rollback()).toMatchObject({ config: OLD, unconfirmed: 'a' });
    const pool = world.pool();
    const observedMachineConfigs = configVersions(pool, world.cluster.list(MachineConfigs));
    world.cluster.put(MachineConfigPools, {
      ...pool,
      spec: { ...pool.spec, configuration: { name: NEW } },
      status: { ...pool.status, observedMachineConfigs },
    });
    await world.look();
    expect(rollback()).toMatchObject({ config: OLD, from: { config: NEW, layered: false } });
    await world.look();
    expect(desired('a')).toBe(OLD);
    expect(rollback()).not.toBeNull();
  });

  it('no node starts towards the change any more', async () => {
    world.putPool(deadline(15_000));
    world.putNode('a', ON_OLD, { configVersion: { desired: OLD } });
    world.now -= 5_000;
    await world.look();
    world.putNode('a', STAGED);
    world.now += 10_000;
    await world.look();
    expect(world.grantOf('a')).toBeUndefined();
    expect(desired('a')).toBe(OLD);
  });

  it('an operator that was down then rolls back when it is there again', async () => {
    await triedEverywhere();
    const later = new RolloutOfPool();
    later.cluster.put(MachineConfigPools, world.pool());
    later.now = world.now + 86_400_000;
    later.putNode('a', UPDATED);
    await later.look();
    expect(later.pool().metadata.annotations?.[annotations.rollback]).toContain(`"config":"${OLD}"`);
  });

  it('a pool that is paused is rolled back when it is resumed', async () => {
    await triedEverywhere();
    const pause = (paused: boolean) => {
      const pool = world.pool();
      world.cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, paused } });
    };
    pause(true);
    world.now += TEN_MINUTES;
    await world.look();
    await world.look();
    expect(rollback()).toMatchObject({ config: OLD });
    expect(desired('a')).toBe(NEW);
    pause(false);
    await world.look();
    expect(desired('a')).toBe(OLD);
  });

  it('nothing is rolled back if the MachineConfigs are what they were', async () => {
    world.putPool(deadline(), { configuration: { name: OLD } });
    world.putNode('a', ON_OLD, { configVersion: { desired: OLD } });
    await world.look();
    world.now += TEN_MINUTES;
    await world.look();
    expect(annotated()).toEqual({});
    expect(world.operator.events.at(-1)).toEqual([
      'Normal',
      'worker',
      'RollbackOver',
      expect.stringMatching(
        new RegExp(`^Nothing is rolled back: .*, and ${OLD} is the pool's target already$`),
      ),
    ]);
  });

  it('a pool that somebody has rolled back meanwhile stays there', async () => {
    await triedEverywhere();
    annotate({ ...annotated(), [annotations.rollback]: JSON.stringify({ config: OLD, by: 'bob' }) });
    await world.look();
    world.now += TEN_MINUTES;
    await world.look();
    expect(rollback()).toMatchObject({ config: OLD, by: 'bob', unconfirmed: 'a' });
    expect(annotated()[annotations.rollbackDeadline]).toBeUndefined();
  });

  it('what is recorded and gone stops the pool, and it says why', async () => {
    await triedEverywhere();
    const pool = world.pool();
    world.cluster.put(MachineConfigPools, {
      ...pool,
      status: { ...pool.status, rollbackDeadline: { id: 'a', config: 'rendered-worker-0' } },
    });
    world.now += TEN_MINUTES;
    await world.look();
    expect(rollback()).toBeNull();
    expect(annotated()[annotations.rollbackDeadline]).toBeDefined();
    expect(world.verdict('Degraded')).toBe('True Degraded');
  });
});

describe('a deadline that can not be kept', () => {
  it.each<[string, () => Record<string, string>, RegExp]>([
    ['has passed', () => deadline(-1), /is refused: .* had passed before the operator saw it; remove it/],
    ['is far away', () => deadline(30 * 86_400_000), /is refused: .* is more than 7 days away/],
    ['is no JSON', () => ({ [annotations.rollbackDeadline]: 'soon' }), /can't be read, so no update starts/],
    [
      'is no time',
      () => ({ [annotations.rollbackDeadline]: '{"id": "a", "until": "tomorrow"}' }),
      /can't be read, so no update starts: until/,
    ],
  ])('because it %s stops the pool, and it says why', async (_what, set, why) => {
    world.putPool(set());
    world.putNode('a', STAGED);
    await world.look();
    const degraded = world.pool().status?.conditions?.find(({ type }) => type === 'Degraded');
    expect(degraded).toMatchObject({ status: 'True', message: expect.stringMatching(why) });
    expect(world.verdict('ChangeTried')).toBe('False DeadlineRefused');
    expect(world.grantOf('a')).toBeUndefined();
  });

  it('because nothing is known that all nodes run, stops the pool', async () => {
    world.putPool(deadline());
    const pool = world.pool();
    world.cluster.put(MachineConfigPools, { ...pool, status: {} });
    world.putNode('a', STAGED);
    await world.look();
    expect(recorded()).toEqual({ id: 'a', refused: expect.stringContaining('no rendered config') });
    expect(world.grantOf('a')).toBeUndefined();
  });

  it('and was recorded is kept again once it can be read', async () => {
    await triedEverywhere();
    const { [annotations.rollbackDeadline]: right = '' } = annotated();
    annotate({ [annotations.rollbackDeadline]: '{' });
    await world.look();
    annotate({ [annotations.rollbackDeadline]: right });
    world.now += TEN_MINUTES;
    await world.look();
    expect(rollback()).toMatchObject({ config: OLD });
  });
});
