/** The rollback of a whole pool: requested, or automatic. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deadline, patience } from '../fixtures/patience.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(120_000) };
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal);
}, patience(60_000));
afterAll(() => fleet.stop());

async function poolOfThree(pool: string, spec = {}): Promise<readonly string[]> {
  const names = [0, 1, 2].map((index) => `${pool}-${index}`);
  await fleet.addPool(pool, spec);
  for (const name of names) await fleet.addNode(name, pool);
  return names;
}

test(
  'shale rollback takes a pool back node by node and holds it there, until it is cleared',
  TEST_MS,
  async () => {
    const names = await poolOfThree('asked');
    const good = (await fleet.poolSays('asked', 'Updated', /^True/)).spec.configuration?.name ?? '';
    const slow = await fleet.change('asked', 'slow');
    for (const name of names) await fleet.runs(name, slow);
    await fleet.poolSays('asked', 'Updated', /^True/);
    const rollback = await fleet.shale('rollback', 'asked', '--reason', 'web is slow');
    expect(rollback).toMatchObject({ exitCode: 0, stderr: '' });
    for (const name of names) await fleet.runs(name, good);
    await fleet.poolSays('asked', 'Updating', /^False RolledBack .*web is slow/);
    expect(fleet.mostCordoned('asked')).toBe(1);

    expect(await fleet.shale('rollback', 'asked', '--clear')).toMatchObject({ exitCode: 0 });
    for (const name of names) await fleet.runs(name, slow);
    await fleet.poolSays('asked', 'Updated', /^True/);
  },
);

test(
  'shale rollback in the middle of a rollout reverts the nodes that are ahead, and leaves the rest alone',
  TEST_MS,
  async () => {
    const names = await poolOfThree('half');
    const good = (await fleet.poolSays('half', 'Updated', /^True/)).spec.configuration?.name ?? '';
    const [ahead = '', next = '', last = ''] = names;
    for (const name of [next, last]) fleet.script(name, { waitsBefore: 'staging' });
    const bad = await fleet.change('half', 'bad');
    await fleet.runs(ahead, bad);
    fleet.script(next, { fails: 'no space left on device' });
    await fleet.poolSays('half', 'NodeDegraded', /^True .*half-1/);
    expect(await fleet.shale('rollback', 'half')).toMatchObject({ exitCode: 0 });
    for (const name of [next, last]) fleet.script(name, {});
    for (const name of names) await fleet.runs(name, good);
    expect(fleet.order().filter((name) => name === last)).toEqual([]);
  },
);

test(
  'a pool with automatic rollback rolls back as a whole, with the nodes on which the target that failed elsewhere succeeded',
  TEST_MS,
  async () => {
    const names = await poolOfThree('itself', {
      maxUnavailable: 2,
      shale: { autoRollback: true },
    });
    const good = (await fleet.poolSays('itself', 'Updated', /^True/)).spec.configuration?.name ?? '';
    const [ahead = '', ...failing] = names;
    for (const name of failing) fleet.script(name, { waitsBefore: 'staging' });
    const bad = await fleet.change('itself', 'bad');
    await fleet.runs(ahead, bad);
    for (const name of failing) fleet.script(name, { fails: 'unit does not start' });
    await fleet.poolSays('itself', 'Updating', /RolledBack .*2 nodes failed and the threshold is 2/);
    for (const name of failing) fleet.script(name, {});
    for (const name of names) await fleet.runs(name, good);
    await fleet.poolSays('itself', 'Updating', /^False RolledBack/);
    await fleet.poolSays('itself', 'NodeDegraded', /^False/);
  },
);
