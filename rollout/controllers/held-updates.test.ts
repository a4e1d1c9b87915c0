import { beforeEach, describe, expect, it } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { putNode as putNodeIn, putPool as putPoolIn } from '../../test/fixtures/fleet/pool-under-way.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';

const signal = new AbortController().signal;
const START = Date.parse('2026-06-01T00:00:00Z');
const HOUR = 3_600_000;

let cluster: MemoryCluster;
let operator: SteppedOperator;
let now: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = START;
  operator = steppedOperator(cluster, () => now);
});

const putPool = (name: string, shale?: SettingFields) => putPoolIn(cluster, name, shale);
const putNode = (pool: string, name: string, version: 1 | 2, since = START) =>
  putNodeIn(cluster, pool, name, version, since);

async function look(pool: string) {
  operator.catchUp();
  const result = await operator.pools.reconcile(pool, signal);
  operator.catchUp();
  return result;
}

const statusOf = (pool: string): MachineConfigPool['status'] => cluster.get(MachineConfigPools, pool)?.status;
const saysOf = (pool: string, type: string) => {
  const found = statusOf(pool)?.conditions?.find((each) => each.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}: ${found.message}`;
};
const granted = (node: string) => cluster.get(MachineConfigNodes, node)?.spec.grant !== undefined;

describe('a pool that depends on another', () => {
  beforeEach(() => {
    putPool('canary');
    putPool('worker', { dependsOn: ['canary'] });
    putNode('canary', 'c', 1);
    putNode('worker', 'w', 1);
  });

  it('starts once the other is Updated, and says so until then', async () => {
    for (const pool of ['canary', 'worker']) await look(pool);
    expect([granted('c'), granted('w')]).toEqual([true, false]);
    const why = 'updates wait for 1 pool (spec.shale.dependsOn): pool canary is not Updated (NodesUpdating)';
    expect(saysOf('worker', 'UpdatesHeld')).toBe(`True AwaitingPools: ${why}`);
    expect(saysOf('worker', 'Updating')).toBe(
      `True AwaitingPools: 0 of 1 node runs rendered-worker-2; ${why}`,
    );
    expect(operator.events).toEqual([['Normal', 'worker', 'UpdatesHeld', `Pool worker: ${why}`]]);
    putNode('canary', 'c', 2);
    for (const pool of ['canary', 'worker']) await look(pool);
    expect(granted('w')).toBe(true);
    expect(saysOf('worker', 'UpdatesHeld')).toBe('False NothingHeld: ');
    expect(operator.events.filter(([, , reason]) => reason === 'UpdatesHeld')).toHaveLength(1);
  });

  it('waits for what the other is yet to be rendered from', async () => {
    putNode('canary', 'c', 2);
    await look('canary');
    operator.renderings.mark('canary');
    await look('worker');
    expect(saysOf('worker', 'UpdatesHeld')).toMatch(/pool canary is about to be rendered$/);
    expect(granted('w')).toBe(false);
  });

  it('does not look at others once all of its nodes are updated', async () => {
    putNode('worker', 'w', 2);
    await look('worker');
    expect(saysOf('worker', 'Updated')).toMatch(/^True/);
    expect(saysOf('worker', 'UpdatesHeld')).toBeUndefined();
  });

  it('is Degraded while they depend on each other, and neither starts', async () => {
    putPool('canary', { dependsOn: ['worker'] });
    for (const pool of ['canary', 'worker']) await look(pool);
    expect([granted('c'), granted('w')]).toEqual([false, false]);
    expect(saysOf('worker', 'Degraded')).toMatch(/in a circle .*: worker -> canary -> worker$/);
    expect(saysOf('canary', 'UpdatesHeld')).toMatch(/^True DependencyCircle: .*canary -> worker -> canary$/);
  });
});

describe('a pool with waves', () => {
  beforeEach(() => {
    putPool('worker', { waves: [{ nodes: 1, bake: '1h' }] });
    for (const name of ['a', 'b', 'c']) putNode('worker', name, 1);
  });
  const all = () => ['a', 'b', 'c'].filter(granted);

  it('starts with one node, and with others once it has baked', async () => {
    await look('worker');
    expect(all()).toEqual(['a']);
    putNode('worker', 'a', 2, START);
    await look('worker');
    expect(all()).toEqual([]);
    expect(saysOf('worker', 'UpdatesHeld')).toBe(
      'True Baking: wave 1 of 1 is 1 node, which bakes until 2026-06-01T01:00:00.000Z',
    );
    expect(await look('worker')).toMatchObject({ kind: 'requeue', afterMs: HOUR });
    now += HOUR - 1;
    await look('worker');
    expect(all()).toEqual([]);
    now += 1;
    await look('worker');
    expect(all()).toEqual(['b', 'c']);
    expect(saysOf('worker', 'UpdatesHeld')).toBe('False NothingHeld: ');
  });

  it('looks at its nodes for as long as they bake, and counts them afterwards', async () => {
    for (const name of ['a', 'b', 'c']) putNode('worker', name, 2, START);
    await look('worker');
    expect(operator.membership.membersOf('worker').isSettled('a')).toBe(false);
    now += HOUR;
    await look('worker');
    expect(operator.membership.membersOf('worker').isSettled('a')).toBe(true);
  });

  it('goes on where a new process left off', async () => {
    await look('worker');
    putNode('worker', 'a', 2, START);
    operator = steppedOperator(cluster, () => now);
    await look('worker');
    expect(all()).toEqual([]);
    now += HOUR;
    await look('worker');
    expect(all()).toEqual(['b', 'c']);
  });
});

describe('a pool that alerts hold back', () => {
  let firing: string[];
  beforeEach(() => {
    firing = ['NodeDown'];
    operator = steppedOperator(
      cluster,
      () => now,
      () => now,
      undefined,
      { askAlerts: async () => firing },
    );
    putPool('worker', { holdOnAlerts: ['severity="critical"'] });
    putNode('worker', 'a', 1);
  });

  it('starts once none of them is firing, and says so until then', async () => {
    await look('worker');
    expect(saysOf('worker', 'UpdatesHeld')).toBeUndefined();
    expect(await look('worker')).toMatchObject({ kind: 'requeue', afterMs: 30_000 });
    const why = 'updates wait for alerts (spec.shale.holdOnAlerts): 1 alert is firing: NodeDown';
    expect(saysOf('worker', 'UpdatesHeld')).toBe(`True AlertsFiring: ${why}`);
    expect(granted('a')).toBe(false);
    firing = [];
    now += 30_000;
    await look('worker');
    expect(granted('a')).toBe(false);
    await look('worker');
    expect(granted('a')).toBe(true);
  });
});

it('a pool starts once no query has a result', async () => {
  let found = ['up == 0'];
  operator = steppedOperator(
    cluster,
    () => now,
    () => now,
    undefined,
    { askQueries: async () => found },
  );
  putPool('worker', { holdOnQueries: ['up == 0'] });
  putNode('worker', 'a', 1);
  await look('worker');
  await look('worker');
  expect(saysOf('worker', 'UpdatesHeld')).toMatch(/^True QueriesHold: .* 1 query has a result: up == 0$/);
  found = [];
  now += 30_000;
  for (let pass = 0; pass < 2; pass += 1) await look('worker');
  expect(granted('a')).toBe(true);
});
