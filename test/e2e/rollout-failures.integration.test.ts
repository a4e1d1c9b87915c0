/** What a rollout does when nodes or builds fail. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const API_VERSION = 'machineconfiguration.openshift.io/v1';
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal);
}, patience(60_000));
afterAll(() => fleet.stop());

test('the first node that fails stops the rollout, and the pool says which and why', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('fails');
  for (const name of ['fails-0', 'fails-1'])
    await fleet.addNode(name, 'fails', { script: { fails: 'no space left on device' } });
  await fleet.change('fails', 'next');
  await fleet.poolSays('fails', 'Updating', /^False RolloutStopped 0 of 2 .*1 node failed.* 1: fails-0$/);
  await fleet.poolSays('fails', 'NodeDegraded', /^True .*fails-0 is reporting: "no space left on device"/);
  const other = await fleet.client.get(MachineConfigNodes, 'fails-1', { signal });
  expect(other.spec.grant).toBeUndefined();
});

test('a node that stopped the rollout retries its target alone, and the others follow once it runs it', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('again', { maxUnavailable: 2 });
  for (const name of ['again-0', 'again-1'])
    await fleet.addNode(name, 'again', { script: { fails: 'disk full', givesUp: true } });
  fleet.script('again-1', { waitsBefore: 'staging' });
  const config = await fleet.change('again', 'next');
  await fleet.poolSays('again', 'Updating', /^False RolloutStopped .* 1: again-0$/);
  fleet.script('again-1', {});
  fleet.script('again-0', { waitsBefore: 'acting' });
  expect(await fleet.shale('retry', 'again-0')).toMatchObject({ exitCode: 0 });
  await seen(
    fleet.client,
    MachineConfigNodes,
    'again-0',
    ({ spec, status }) => spec.grant !== undefined && status?.plan !== undefined,
  );
  await fleet.poolSays('again', 'Updating', /^False RolloutStopped .* 1: again-0 \(retrying\)$/);
  const other = await fleet.client.get(MachineConfigNodes, 'again-1', { signal });
  expect(other.spec.grant).toBeUndefined();
  fleet.script('again-0', {});
  for (const name of ['again-0', 'again-1']) await fleet.runs(name, config);
  expect(fleet.order().filter((name) => name.startsWith('again-'))).toEqual(['again-0', 'again-1']);
  await fleet.poolSays('again', 'Degraded', /^False/);
});

test('the first node whose live update fails reboots and recovers, and no other node reboots for it', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('live');
  for (const name of ['live-0', 'live-1', 'live-2'])
    await fleet.addNode(name, 'live', { script: { actions: RESTART, failsLive: 'chronyd does not start' } });
  const config = await fleet.change('live', 'next');
  await fleet.runs('live-0', config);
  await fleet.poolSays(
    'live',
    'Updating',
    /^False RolloutStopped 1 of 3 .* 1: live-0 \(its live update failed: chronyd does not start; it rebooted instead\)$/,
  );
  await fleet.poolSays('live', 'NodeDegraded', /^False/);
  await seen(fleet.client, Nodes, 'live-0', ({ spec }) => spec?.unschedulable !== true);
  for (const name of ['live-1', 'live-2']) {
    const { spec } = await fleet.client.get(MachineConfigNodes, name, { signal });
    expect([spec.configVersion.desired, spec.grant]).toEqual([config, undefined]);
    fleet.script(name, { actions: RESTART });
  }
  const corrected = await fleet.change('live', 'corrected');
  fleet.script('live-0', { actions: RESTART });
  for (const name of ['live-0', 'live-1', 'live-2']) await fleet.runs(name, corrected);
  await fleet.poolSays('live', 'Degraded', /^False/);
});

test('a node that stays down after its update stops it, keeps its place, and is put back to work when it is up', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('down', { maxUnavailable: 2, shale: { unhealthyAfter: '2s' } });
  await fleet.addNode('down-0', 'down', { script: { staysDown: true } });
  await fleet.addNode('down-1', 'down', { settled: true });
  await fleet.patchNode('down-1', { spec: { unschedulable: true } });
  const flag = JSON.stringify({ reason: 'later', until: '2999-01-01T00:00:00Z' });
  await fleet.patchNode('down-1', { metadata: { annotations: { [annotations.plannedMaintenance]: flag } } });
  const config = await fleet.change('down', 'next');
  await fleet.poolSays('down', 'Updating', /^False RolloutStopped .*down-0 \(not Ready since its update\)/);
  await fleet.poolSays('down', 'Degraded', /^True .*down-0 \(not Ready since its update\)/);
  expect((await fleet.client.get(Nodes, 'down-0', { signal })).spec?.unschedulable).toBe(true);
  await fleet.setReady('down-0', true);
  await seen(fleet.client, Nodes, 'down-0', ({ spec }) => spec?.unschedulable !== true);
  await fleet.runs('down-0', config);
  await fleet.poolSays('down', 'Degraded', /^False/);
});

test('a pool with automatic rollback returns to the target that worked', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('back', { shale: { autoRollback: true } });
  for (const name of ['back-0', 'back-1']) await fleet.addNode(name, 'back');
  const good = (await fleet.poolSays('back', 'Updated', /^True/)).spec.configuration?.name ?? '';
  for (const name of ['back-0', 'back-1']) fleet.script(name, { fails: 'unit does not start' });
  await fleet.change('back', 'broken');
  const { metadata } = await seen(
    fleet.client,
    MachineConfigPools,
    'back',
    (pool) => pool.metadata.annotations?.[annotations.rollback] !== undefined,
  );
  expect(JSON.parse(metadata.annotations?.[annotations.rollback] ?? '')).toMatchObject({
    config: good,
    by: 'shale',
  });
  for (const name of ['back-0', 'back-1']) fleet.script(name, {});
  for (const name of ['back-0', 'back-1']) await fleet.runs(name, good);
  await fleet.poolSays('back', 'Updating', /^False RolledBack .*1 node failed/);
  // A corrected configuration is news that the rollback knew nothing of.
  const corrected = await fleet.change('back', 'corrected');
  for (const name of ['back-0', 'back-1']) await fleet.runs(name, corrected);
});

test("one pool's failing build holds up no other, and its own nodes keep what they run", {
  timeout: patience(60_000),
}, async () => {
  const image = `registry.test/os/built@sha256:${'a'.repeat(64)}`;
  for (const pool of ['built', 'broken']) {
    await fleet.addPool(pool);
    await fleet.addNode(`${pool}-0`, pool);
    await layer(pool);
  }
  await build('broken', { conditions: [said('Failed', 'no space in the registry')] });
  await build('built', { conditions: [said('Succeeded')], digestedImagePushSpec: image });
  await seen(
    fleet.client,
    MachineConfigNodes,
    'built-0',
    ({ status }) => status?.configImage?.currentImage === image,
  );
  await fleet.poolSays('built', 'Updated', /^True/);
  await fleet.poolSays('broken', 'BuildFailed', /^True/);
  await fleet.poolSays('broken', 'Updating', /^False BuildFailed Nodes stay on what they run: .*no space/);
  const { spec } = await fleet.client.get(MachineConfigNodes, 'broken-0', { signal });
  expect(spec.configImage).toBeUndefined();
});

async function layer(pool: string): Promise<void> {
  const spec = {
    machineConfigPool: { name: pool },
    renderedImagePushSpec: `registry.test/os/${pool}:latest`,
  };
  const wish = { apiVersion: API_VERSION, kind: 'MachineOSConfig', metadata: { name: pool }, spec };
  await fleet.client.create(MachineOSConfigs, wish, { signal });
}

function said(type: string, message = '') {
  return {
    type,
    status: 'True' as const,
    reason: 'Test',
    message,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
}

/** What the builder would write. */
async function build(pool: string, status: object): Promise<void> {
  const { client } = fleet;
  const { spec } = await client.get(MachineConfigPools, pool, { signal });
  const name = `${pool}-1`;
  const config = spec.configuration?.name ?? '';
  const wish = {
    machineConfig: { name: config },
    machineOSConfig: { name: pool },
    renderedImagePushSpec: `registry.test/os/${pool}:${name}`,
  };
  const made = await client.create(
    MachineOSBuilds,
    { apiVersion: API_VERSION, kind: 'MachineOSBuild', metadata: { name }, spec: wish },
    { signal },
  );
  await updateStatus(client, MachineOSBuilds, made, () => status, { signal });
  const current = await client.get(MachineOSConfigs, pool, { signal });
  const machineOSBuild = { group: 'machineconfiguration.openshift.io', resource: 'machineosbuilds', name };
  await updateStatus(
    client,
    MachineOSConfigs,
    current,
    ({ status: before }) => ({ ...before, machineOSBuild }),
    { signal },
  );
}
