/** A change that is tried with the real operator: confirmed, and in each way not. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations, labels } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import { deadlineOf } from '../../cli/try/decide-try.ts';
import { type ShaleRun, shaleProcess } from '../cli/shale-process.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(120_000) };
let fleet: FleetUnderTest;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-try-'));
  fleet = await startFleetUnderTest(signal);
  await writeFile(path.join(dir, 'kubeconfig'), fleet.cluster.kubeconfig(), { mode: 0o600 });
}, patience(60_000));
afterAll(async () => {
  await fleet.stop();
  await rm(dir, { recursive: true });
});

/** In a process of its own: others are run while it waits. */
function inForeground(...args: readonly string[]): Promise<ShaleRun> {
  return shaleProcess(['try', ...args], { env: { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir } });
}

/** @returns the rendered config that the pool begins with. */
async function poolOfOne(pool: string): Promise<string> {
  await fleet.addPool(pool);
  await fleet.addNode(`${pool}-0`, pool);
  return (await fleet.poolSays(pool, 'Updated', /^True/)).spec.configuration?.name ?? '';
}

/** @returns a file with a MachineConfig of a role. */
async function change(role: string, name = `50-${role}`, content = 'tried'): Promise<string> {
  const files = [{ path: `/etc/${name}`, contents: { source: `data:,${content}` } }];
  const config: MachineConfig = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { [labels.role]: role } },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } },
  };
  const file = path.join(dir, `${name}.json`);
  await writeFile(file, JSON.stringify(config));
  return file;
}

/** @returns the rendered config of the change, once the pool's node runs it. */
async function runsChange(pool: string, before: string): Promise<string> {
  const { spec } = await seen(
    fleet.client,
    MachineConfigPools,
    pool,
    ({ spec: of }) => of.configuration?.name !== before,
  );
  const tried = spec.configuration?.name ?? '';
  await fleet.runs(`${pool}-0`, tried);
  return tried;
}

/** The deadline is a second away. */
async function expireSoon(pool: string): Promise<void> {
  const own = deadlineOf(await fleet.client.get(MachineConfigPools, pool, { signal }));
  if (own === undefined || own === 'unreadable') throw new Error(`pool ${pool} has no deadline`);
  const until = toSeconds(new Date(Date.now() + 1_000));
  await fleet.annotatePool(pool, { [annotations.rollbackDeadline]: JSON.stringify({ ...own, until }) });
}

const configOf = (name: string) => fleet.client.find(MachineConfigs, name, { signal });

test('a change that somebody confirms stays, and its command ends', TEST_MS, async () => {
  const before = await poolOfOne('kept');
  const command = inForeground('-f', await change('kept'), '--reason', 'NTP');
  await fleet.poolSays('kept', 'ChangeTried', new RegExp(`^True .* rolled back to ${before} at .*: NTP$`));
  const tried = await runsChange('kept', before);
  const second = await fleet.shale('try', '-f', await change('kept', '50-kept', 'other'));
  expect(second.exitCode).toBe(1);
  expect(second.stderr).toMatch(
    /pool kept: a change of .+ is being tried until .*; confirm or cancel it first/,
  );

  expect(await fleet.shale('try', 'confirm')).toMatchObject({ exitCode: 0, stdout: 'pool kept: confirmed' });
  expect(await command).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/MachineConfig 50-kept: applied\n.*\nthe change is confirmed$/s),
  });
  await fleet.poolSays('kept', 'ChangeTried', /^False NothingTried/);
  await fleet.poolSays('kept', 'Updated', new RegExp(`^True .*${tried}`));
});

test(
  'a change that nobody confirms is rolled back and undone, also one that was created',
  TEST_MS,
  async () => {
    const before = await poolOfOne('expired');
    const first = await configOf('50-expired');
    const created = await change('expired', '60-expired');
    const command = inForeground('-f', await change('expired'), created);
    await fleet.poolSays('expired', 'ChangeTried', /^True/);
    await runsChange('expired', before);
    await expireSoon('expired');
    expect(await command).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('MachineConfig 60-expired: deleted, as there was none before'),
      stderr: expect.stringContaining('the change was not confirmed, and is undone'),
    });
    await fleet.eventSays('expired', /^RollingBack .*was not confirmed until/);
    await fleet.runs('expired-0', before);
    expect((await configOf('50-expired'))?.spec).toEqual(first?.spec);
    expect(await configOf('60-expired')).toBeUndefined();
    // The MachineConfigs ask for what the pool was rolled back to, so nothing holds it there.
    await fleet.poolSays('expired', 'Updated', new RegExp(`^True .*${before}`));
    const isFree = ({ metadata: { annotations: own = {} } }: MachineConfigPool) =>
      Object.keys(own).length === 0;
    await seen(fleet.client, MachineConfigPools, 'expired', isFree);
  },
);

test(
  'without the command, the pool is rolled back and held until its MachineConfig is fixed',
  TEST_MS,
  async () => {
    const before = await poolOfOne('alone');
    const started = await fleet.shale('try', '-f', await change('alone'), '--no-wait', '--for', '1h');
    expect(started).toMatchObject({ exitCode: 0 });
    await runsChange('alone', before);
    await expireSoon('alone');
    await fleet.runs('alone-0', before);
    await fleet.poolSays('alone', 'Updated', /^False RolledBack .*was not confirmed until/);
    expect(JSON.stringify(await configOf('50-alone'))).toContain('tried');
    const late = await fleet.shale('try', 'confirm', 'alone');
    expect(late.exitCode).toBe(1);
    expect(late.stderr).toContain('the change was not confirmed in time, and the pool was rolled back');

    const fixed = await fleet.change('alone', 'fixed');
    await fleet.runs('alone-0', fixed);
    await fleet.poolSays('alone', 'Updated', /^True/);
  },
);

test('cancelled elsewhere, it is rolled back at once, and undone by its command', TEST_MS, async () => {
  const before = await poolOfOne('cancelled');
  const command = inForeground('-f', await change('cancelled'), '--for', '1h');
  await fleet.poolSays('cancelled', 'ChangeTried', /^True/);
  await runsChange('cancelled', before);
  const dryRun = await fleet.shale('try', 'cancel', '--dry-run');
  expect(dryRun.stdout).toContain(`pool cancelled: rolling back to ${before}`);
  expect(await fleet.shale('try', 'cancel')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('pool cancelled: the operator rolls it back'),
  });
  expect(await command).toMatchObject({ exitCode: 1 });
  await fleet.runs('cancelled-0', before);
  await fleet.poolSays('cancelled', 'Updated', /^True/);
});

test('cancelled before it is rendered, it is never rolled out', TEST_MS, async () => {
  const before = await poolOfOne('early');
  const started = await fleet.shale('try', '-f', await change('early'), '--no-wait');
  expect(started).toMatchObject({ exitCode: 0 });
  await fleet.shale('try', 'cancel', 'early');
  await fleet.poolSays('early', 'Updated', /^False RolledBack .*was not confirmed until/);
  const { metadata, spec } = await fleet.client.get(MachineConfigPools, 'early', { signal });
  expect(spec.configuration?.name).not.toBe(before);
  const { from } = JSON.parse(metadata.annotations?.[annotations.rollback] ?? '{}') as { from?: unknown };
  expect(from).toMatchObject({ config: spec.configuration?.name });
  await fleet.runs('early-0', before);
});

test('what somebody has changed meanwhile stays, and the pool is held all the same', TEST_MS, async () => {
  const before = await poolOfOne('edited');
  const command = inForeground('-f', await change('edited'));
  await fleet.poolSays('edited', 'ChangeTried', /^True/);
  await runsChange('edited', before);
  const edited = await fleet.change('edited', 'edited');
  await fleet.runs('edited-0', edited);
  await expireSoon('edited');
  expect(await command).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining(
      'MachineConfig 50-edited: somebody changed it since, so it stays as it is',
    ),
  });
  await fleet.runs('edited-0', before);
  await fleet.poolSays('edited', 'Updated', /^False RolledBack/);
  expect(JSON.stringify(await configOf('50-edited'))).toContain('data:,edited');
});

test('nothing is applied in a pool that could not be rolled back', TEST_MS, async () => {
  await poolOfOne('paused');
  await fleet.pause('paused', true);
  const { exitCode, stderr } = await fleet.shale('try', '-f', await change('paused', '60-paused'));
  expect(exitCode).toBe(1);
  expect(stderr).toContain(
    'pool paused is paused, so its nodes would neither apply the change nor roll back',
  );
  expect(await configOf('60-paused')).toBeUndefined();
  const { metadata } = await fleet.client.get(MachineConfigPools, 'paused', { signal });
  expect(metadata.annotations ?? {}).toEqual({});
});

test('a change of several pools is about each of them', TEST_MS, async () => {
  const before = await poolOfOne('one');
  const both = {
    machineConfigSelector: {
      matchExpressions: [{ key: labels.role, operator: 'In', values: ['one', 'two'] }],
    },
  };
  await fleet.addPool('two', both);
  await fleet.addNode('two-0', 'two');
  const other = (await fleet.poolSays('two', 'Updated', /^True/)).spec.configuration?.name ?? '';
  const command = inForeground('-f', await change('one', '60-both'));
  for (const [pool, ran] of [
    ['one', before],
    ['two', other],
  ] as const) {
    await fleet.poolSays(pool, 'ChangeTried', /^True/);
    await runsChange(pool, ran);
  }
  expect(await fleet.shale('try', 'confirm', 'one')).toMatchObject({ exitCode: 0 });
  await expireSoon('two');
  expect(await command).toMatchObject({ exitCode: 1 });
  await fleet.runs('two-0', other);
  await fleet.runs('one-0', before);
});
