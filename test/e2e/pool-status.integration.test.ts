/** What a pool reports, with MCO's conditions. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type BuilderUnderTest, startBuilderUnderTest } from './builder-under-test.ts';
import { seen } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(90_000) };
const isTrue =
  (type: string) =>
  ({ status }: MachineConfigPool): boolean =>
    conditionIsTrue(status?.conditions, type);

describe('of its nodes', () => {
  let fleet: FleetUnderTest;
  beforeAll(async () => {
    fleet = await startFleetUnderTest(signal);
  }, patience(60_000));
  afterAll(() => fleet.stop());

  test('a pool counts its nodes while they are updated one by one', TEST_MS, async () => {
    await fleet.addPool('counted');
    for (const name of ['counted-0', 'counted-1', 'counted-2']) await fleet.addNode(name, 'counted');
    const { spec } = await fleet.poolSays('counted', 'Updated', /^True AllNodesUpdated/);
    const before = spec.configuration?.name;
    for (const name of ['counted-1', 'counted-2']) fleet.script(name, { waitsBefore: 'staging' });
    const after = await fleet.change('counted', 'next');
    await fleet.runs('counted-0', after);
    fleet.script('counted-1', { waitsBefore: 'acting' });
    const during = await fleet.poolSays(
      'counted',
      'Updating',
      /^True NodesUpdating 1 of 3 nodes run .*counted-1/,
    );
    expect(during.status).toMatchObject({
      observedGeneration: during.metadata.generation,
      machineCount: 3,
      updatedMachineCount: 1,
      unavailableMachineCount: 1,
      degradedMachineCount: 0,
      configuration: { name: before, source: [{ kind: 'MachineConfig', name: '50-counted' }] },
    });
    for (const name of ['counted-1', 'counted-2']) fleet.script(name, {});
    const end = await fleet.poolSays('counted', 'Updated', /^True AllNodesUpdated/);
    expect(end.status).toMatchObject({
      machineCount: 3,
      updatedMachineCount: 3,
      readyMachineCount: 3,
      unavailableMachineCount: 0,
      configuration: { name: after },
    });
    expect(isTrue('Updating')(end) || isTrue('Degraded')(end)).toBe(false);
  });

  test('a pool that can not be rendered says why and leaves its nodes alone', TEST_MS, async () => {
    await fleet.addPool('rendered');
    await fleet.addNode('rendered-0', 'rendered');
    const { spec } = await fleet.poolSays('rendered', 'Updated', /^True/);
    const file = { path: '/etc/rendered', contents: { source: 'data:,no data URL' } };
    const body = { spec: { config: { ignition: { version: '3.4.0' }, storage: { files: [file] } } } };
    await fleet.client.patch(MachineConfigs, '50-rendered', { type: 'merge', body }, { signal });
    const why = /^True .*MachineConfig 50-rendered: .*unescaped/;
    await fleet.poolSays('rendered', 'RenderDegraded', why);
    const { status } = await fleet.poolSays('rendered', 'Degraded', why);
    expect(conditionIsTrue(status?.conditions, 'Updated')).toBe(true);
    await fleet.runs('rendered-0', spec.configuration?.name ?? '');
    const corrected = await fleet.change('rendered', 'good');
    await fleet.runs('rendered-0', corrected);
    await fleet.poolSays('rendered', 'RenderDegraded', /^False/);
  });
});

describe('of its image', () => {
  let under: BuilderUnderTest;
  const stop = new AbortController();
  let building: Promise<void> = Promise.resolve();
  beforeAll(async () => {
    under = await startBuilderUnderTest(signal);
    await under.createSecret('push', under.auths('secret'));
  }, patience(60_000));
  afterAll(async () => {
    stop.abort();
    await building;
    await under.stop();
  });

  test(
    'a pool says that it waits for a build, that one is at work, and that it has its image',
    TEST_MS,
    async () => {
      const { client } = under.cluster;
      await under.layerPool('plain', { secret: 'push' });
      // Nobody answers there, so that the build is tried again and again.
      await under.layerPool('stuck', { secret: 'push', pushSpec: '127.0.0.1:1/os/stuck:latest' });
      await seen(client, MachineConfigPools, 'plain', isTrue('BuildPending'));
      building = under.runBuilder(stop.signal);
      const built = await seen(client, MachineConfigPools, 'plain', isTrue('BuildSuccess'));
      expect(isTrue('BuildPending')(built) || isTrue('Building')(built)).toBe(false);
      const stuck = await seen(client, MachineConfigPools, 'stuck', isTrue('Building'));
      expect(isTrue('BuildSuccess')(stuck) || isTrue('BuildFailed')(stuck)).toBe(false);
    },
  );
});
