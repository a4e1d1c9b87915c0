/** What prevents the update of a node or a whole pool: each is reported on the pool until it is gone. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { CustomResourceDefinitions, Leases, Nodes, Pods, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import {
  annotations,
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  hookPrefixes,
  NODE_PULL_SECRET,
} from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PinnedImageSets } from '../../api/pinned-image-set.ts';
import { acquireLease } from '../../cluster/lease.ts';
import { RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { blockDrain } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal);
  await define('nodemaintenance.medik8s.io', 'v1beta1', 'NodeMaintenance', 'Cluster');
  await define('cluster.x-k8s.io', 'v1beta1', 'Machine', 'Namespaced');
}, patience(60_000));
afterAll(() => fleet.stop());

const kindOf = (
  group: string,
  version: string,
  kind: string,
  namespaced: boolean,
): Kind<KubernetesObject> => ({
  group,
  version,
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced,
});
const NodeMaintenances = kindOf('nodemaintenance.medik8s.io', 'v1beta1', 'NodeMaintenance', false);
const Machines = kindOf('cluster.x-k8s.io', 'v1beta1', 'Machine', true);

/** Definitions of others, as far as they matter here. */
async function define(group: string, version: string, kind: string, scope: string): Promise<void> {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const spec = {
    group,
    scope,
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [{ name: version, served: true, storage: true, schema }],
  };
  const metadata = { name: `${plural}.${group}` };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata,
    spec,
  };
  await fleet.client.create(CustomResourceDefinitions, definition, { signal });
}

const skipped = (node: string, why: string) => new RegExp(`${node}: skipped: ${why}`);

// First, for the answer about NodeMaintenances is kept for some seconds.
test('a node with a NodeMaintenance waits until that is over', { timeout: patience(120_000) }, async () => {
  const apiVersion = 'nodemaintenance.medik8s.io/v1beta1';
  const spec = { nodeName: 'medik8s-0' };
  const maintenance = { apiVersion, kind: 'NodeMaintenance', metadata: { name: 'm' }, spec };
  await fleet.client.create(NodeMaintenances, maintenance, { signal });
  await fleet.addPool('medik8s');
  await fleet.addNode('medik8s-0', 'medik8s', { settled: false });
  const { spec: wanted } = await fleet.poolSays(
    'medik8s',
    'Updating',
    skipped('medik8s-0', 'a NodeMaintenance is active'),
  );
  await fleet.client.delete(NodeMaintenances, 'm', { signal });
  // No change of an object wakes the operator, which checks every half minute.
  await fleet.runs('medik8s-0', wanted.configuration?.name ?? '', 90_000);
});

test('a node whose lease another holds waits until the lease is given back', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('leases');
  await fleet.addNode('leases-0', 'leases');
  const wish = { namespace: DEFAULT_LEASE_NAMESPACE, name: 'node-leases-0', holder: 'node-maintenance' };
  // The operator gives it back at the end of the first update, a moment after the node shows that end.
  await vi.waitUntil(
    async () => (await acquireLease(fleet.client, { ...wish, durationSeconds: 3600 }, signal)).acquired,
    { timeout: patience(30_000) },
  );
  const config = await fleet.change('leases', 'next');
  await fleet.poolSays('leases', 'Updating', skipped('leases-0', 'its lease is held by node-maintenance'));
  expect((await fleet.client.get(Nodes, 'leases-0', { signal })).spec?.unschedulable).toBeUndefined();
  // Nor is anything staged, pulled or installed on it, and those who change its pool are told.
  const spec = async () => (await fleet.client.get(MachineConfigNodes, 'leases-0', { signal })).spec;
  const pull = { apiVersion: 'v1', kind: 'Secret', metadata: { name: NODE_PULL_SECRET } };
  const data = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
  await fleet.client.create(Secrets, { ...pull, data }, { namespace: DEFAULT_NAMESPACE, signal });
  const set = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'PinnedImageSet' };
  const image = `registry.example.com/app@sha256:${'a'.repeat(64)}`;
  await fleet.client.create(
    PinnedImageSets,
    { ...set, metadata: { name: 'apps' }, spec: { pinnedImages: [{ name: image }] } },
    { signal },
  );
  const pinning = { spec: { pinnedImageSets: [{ name: 'apps' }] } };
  await fleet.client.patch(MachineConfigPools, 'leases', { type: 'merge', body: pinning }, { signal });
  await fleet.poolSays('leases', 'Updating', skipped('leases-0', 'its lease is held by node-maintenance'));
  const held = await spec();
  expect(held).toMatchObject({ heldBy: 'its lease is held by node-maintenance' });
  expect([held.configVersion.desired === config, held.certificates?.pullSecret, held.pinnedImages]).toEqual([
    false,
    undefined,
    undefined,
  ]);
  const pool = await fleet.client.get(MachineConfigPools, 'leases', { signal });
  expect(pool.status?.heldNodes).toEqual([
    { name: 'leases-0', why: 'its lease is held by node-maintenance' },
  ]);

  // All of it is made up for when the lease is given back.
  await fleet.client.delete(Leases, wish.name, { namespace: wish.namespace, signal });
  await fleet.runs('leases-0', config);
  await vi.waitFor(
    async () => {
      const { heldBy, certificates, pinnedImages } = await spec();
      expect(heldBy).toBeUndefined();
      expect(certificates?.pullSecret).toEqual(expect.any(String));
      expect(pinnedImages?.sets.map(({ name }) => name)).toEqual(['apps']);
    },
    { timeout: patience(20_000), interval: 50 },
  );
});

test('a node whose Machine is being deleted is left alone, and the pool is Updated without it', {
  timeout: patience(60_000),
}, async () => {
  const metadata = { name: 'm-1', finalizers: ['test/keep'] };
  const machine = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Machine', metadata };
  await fleet.client.create(Machines, machine, { namespace: 'default', signal });
  await fleet.client.delete(Machines, 'm-1', { namespace: 'default', signal });
  await fleet.addPool('machines', { maxUnavailable: 2 });
  await fleet.addNode('machines-0', 'machines');
  const on = { 'cluster.x-k8s.io/machine': 'm-1', 'cluster.x-k8s.io/cluster-namespace': 'default' };
  await fleet.addNode('machines-1', 'machines', { annotations: on, settled: false });
  const config = await fleet.change('machines', 'next');
  await fleet.runs('machines-0', config);
  await fleet.poolSays(
    'machines',
    'Updated',
    /^True AllNodesUpdated .*machines-1 is not waited for: its Machine is being deleted/,
  );
  const { spec } = await fleet.client.get(MachineConfigNodes, 'machines-1', { signal });
  expect(spec.grant).toBeUndefined();
});

test('a node that is being deleted is left alone, and one that is about to be deleted is skipped', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('leaving');
  for (const name of ['leaving-0', 'leaving-1', 'leaving-2']) await fleet.addNode(name, 'leaving');
  await fleet.patchNode('leaving-0', { metadata: { finalizers: ['test/keep'] } });
  await fleet.client.delete(Nodes, 'leaving-0', { signal });
  const taint = { key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' };
  await fleet.patchNode('leaving-1', { spec: { taints: [taint] } });
  const config = await fleet.change('leaving', 'next');
  await fleet.runs('leaving-2', config);
  await fleet.poolSays(
    'leaving',
    'Updating',
    skipped('leaving-1', 'the cluster autoscaler is about to delete'),
  );
  for (const name of ['leaving-0', 'leaving-1']) {
    const { spec } = await fleet.client.get(MachineConfigNodes, name, { signal });
    expect(spec.grant).toBeUndefined();
  }
  await fleet.patchNode('leaving-1', { spec: { taints: null } });
  await fleet.runs('leaving-1', config);
  await fleet.patchNode('leaving-0', { metadata: { finalizers: null } });
  await fleet.poolSays('leaving', 'Updated', /^True AllNodesUpdated All 2 nodes/);
});

test('a node that was switched off on request is not waited for, and takes what it missed when the request ends', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('power');
  await fleet.addNode('power-0', 'power');
  await fleet.addNode('power-1', 'power', { annotations: {}, script: {} });
  // Before the second in which the node is Ready again: conditions have no fractions of one.
  const since = new Date(Date.now() - 2_000).toISOString();
  const flag = JSON.stringify({ by: 'ann', reason: 'fan', since });
  await fleet.patchNode('power-1', { metadata: { annotations: { [annotations.poweredOff]: flag } } });
  await fleet.setReady('power-1', false);
  const config = await fleet.change('power', 'next');
  await fleet.runs('power-0', config);
  await fleet.poolSays(
    'power',
    'Updated',
    /^True .*power-1 is not waited for: switched off on request by ann: fan/,
  );
  await fleet.setReady('power-1', true);
  await fleet.poolSays(
    'power',
    'Updating',
    skipped('power-1', 'it runs, but was switched off on request by ann'),
  );
  expect((await fleet.client.get(MachineConfigNodes, 'power-1', { signal })).spec.grant).toBeUndefined();
  const { stdout } = await fleet.shale('maintenance', 'list');
  expect(stdout).toMatch(/power-1 .*it runs, but was switched off on request by ann: fan/);
  await fleet.patchNode('power-1', { metadata: { annotations: { [annotations.poweredOff]: null } } });
  await fleet.runs('power-1', config);
});

test('a flagged node and one that somebody drains are skipped, use up maxUnavailable, and the pool names both', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('flags');
  for (const name of ['flags-0', 'flags-1', 'flags-2']) await fleet.addNode(name, 'flags');
  const flag = JSON.stringify({ by: 'ann', reason: 'disk', until: '2999-01-01T00:00:00Z' });
  await fleet.patchNode('flags-0', { metadata: { annotations: { [annotations.plannedMaintenance]: flag } } });
  await fleet.poolSays('flags', 'Updated', /flags-0 would be skipped: flagged for maintenance by ann: disk/);
  // As kubectl drain does first.
  await fleet.patchNode('flags-1', { spec: { unschedulable: true } });
  const config = await fleet.change('flags', 'next');
  await fleet.poolSays('flags', 'Updating', skipped('flags-0', 'flagged for maintenance by ann: disk'));
  await fleet.poolSays('flags', 'Updating', skipped('flags-1', 'cordoned, and not by Shale'));
  await fleet.poolSays('flags', 'Updating', /^True MaxUnavailableReached /);
  expect((await fleet.client.get(MachineConfigNodes, 'flags-1', { signal })).spec.grant).toBeUndefined();
  const { stdout } = await fleet.shale('explain', 'flags-1');
  expect(stdout).toContain('skipped: cordoned, and not by Shale');
  await fleet.patchNode('flags-1', { spec: { unschedulable: null } });
  await fleet.runs('flags-1', config);
  await fleet.runs('flags-2', config);
  await fleet.patchNode('flags-0', { metadata: { annotations: { [annotations.plannedMaintenance]: null } } });
  await fleet.runs('flags-0', config);
});

test('a pool that wants it updates a node that others cordoned, and leaves their cordon', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('cordons', { shale: { updateCordoned: true } });
  for (const name of ['cordons-0', 'cordons-1']) await fleet.addNode(name, 'cordons');
  await fleet.patchNode('cordons-1', { spec: { unschedulable: true } });
  const config = await fleet.change('cordons', 'next');
  // It may go first: that makes no further node unavailable.
  await fleet.runs('cordons-1', config);
  expect((await fleet.client.get(Nodes, 'cordons-1', { signal })).spec?.unschedulable).toBe(true);
  await fleet.poolSays(
    'cordons',
    'Updating',
    /^True MaxUnavailableReached .*cordons-1: unavailable: cordoned/,
  );
  await fleet.patchNode('cordons-1', { spec: { unschedulable: null } });
  await fleet.runs('cordons-0', config);
});

test('a node that Karpenter disrupts, or that is under repair, is skipped until the taint goes', {
  timeout: patience(60_000),
}, async () => {
  await fleet.addPool('taints');
  for (const name of ['taints-0', 'taints-1']) await fleet.addNode(name, 'taints');
  const karpenter = { key: 'karpenter.sh/disrupted', effect: 'NoSchedule' };
  const remediation = {
    key: 'medik8s.io/remediation',
    value: 'fence-agents-remediation',
    effect: 'NoExecute',
  };
  await fleet.patchNode('taints-0', { spec: { taints: [karpenter] } });
  await fleet.patchNode('taints-1', { spec: { taints: [remediation] } });
  const config = await fleet.change('taints', 'next');
  await fleet.poolSays('taints', 'Updating', skipped('taints-0', 'Karpenter is about to delete the node'));
  await fleet.poolSays('taints', 'Updating', skipped('taints-1', 'the node is under repair'));
  await fleet.patchNode('taints-0', { spec: { taints: null } });
  await fleet.runs('taints-0', config);
  expect((await fleet.client.get(MachineConfigNodes, 'taints-1', { signal })).spec.grant).toBeUndefined();
  await fleet.patchNode('taints-1', { spec: { taints: null } });
  await fleet.runs('taints-1', config);
});

test('nothing begins in a paused pool', { timeout: patience(60_000) }, async () => {
  await fleet.addPool('paused');
  await fleet.addNode('paused-0', 'paused');
  await fleet.poolSays('paused', 'Updated', /^True/);
  await fleet.pause('paused', true);
  const config = await fleet.change('paused', 'next');
  await fleet.poolSays('paused', 'Updating', /^False Paused The pool is paused; 0 of 1/);
  await fleet.pause('paused', false);
  await fleet.runs('paused-0', config);
});

test('outside of the maintenance windows live updates alone begin, where the pool lets them', {
  timeout: patience(60_000),
}, async () => {
  const later = new Date(Date.now() + 3_600_000);
  const closed = [{ schedule: `${later.getUTCMinutes()} ${later.getUTCHours()} * * *`, duration: '10m' }];
  await fleet.addPool('windows', { shale: { maintenanceWindows: closed, liveOutsideWindows: true } });
  await fleet.addNode('windows-0', 'windows');
  await fleet.addNode('windows-1', 'windows', { script: { actions: RESTART } });
  const config = await fleet.change('windows', 'next');
  await fleet.runs('windows-1', config);
  await fleet.poolSays('windows', 'Updating', /^True AwaitingMaintenanceWindow 1 of 2 .*opens at 20/);
  const open = [{ schedule: '* * * * *', duration: '2m' }];
  await fleet.setPool('windows', { maintenanceWindows: open });
  await fleet.runs('windows-0', config);
});

test('a pool waits for another one, and its nodes for hooks that others clear', {
  timeout: patience(120_000),
}, async () => {
  await fleet.addPool('ahead');
  await fleet.addNode('ahead-0', 'ahead');
  await fleet.addPool('behind', { shale: { dependsOn: ['ahead'] } });
  await fleet.addNode('behind-0', 'behind');
  await fleet.setPool('behind', { hooksBefore: ['lb'], hooksAfter: ['gpu'] });
  await fleet.pause('ahead', true);
  await fleet.change('ahead', 'next');
  const config = await fleet.change('behind', 'next');
  await fleet.poolSays(
    'behind',
    'UpdatesHeld',
    /^True AwaitingPools .*: pool ahead is not Updated \(Paused\)$/,
  );
  const { stdout } = await fleet.shale('explain', 'behind-0');
  expect(stdout).toContain('held: updates wait for 1 pool');
  expect((await fleet.client.get(Nodes, 'behind-0', { signal })).spec?.unschedulable).toBeUndefined();
  await fleet.pause('ahead', false);
  await fleet.poolSays(
    'behind',
    'Updating',
    /behind-0: has been waiting since .* before it is drained .*: lb$/,
  );
  expect((await fleet.client.get(MachineConfigNodes, 'behind-0', { signal })).spec.grant).toBeUndefined();
  await fleet.patchNode('behind-0', { metadata: { annotations: { [`${hookPrefixes.before}lb`]: null } } });
  await fleet.poolSays('behind', 'Updating', /behind-0: has been waiting since .* schedulable again: gpu$/);
  await fleet.patchNode('behind-0', { metadata: { annotations: { [`${hookPrefixes.after}gpu`]: null } } });
  await fleet.runs('behind-0', config);
  const { metadata } = await fleet.client.get(Nodes, 'behind-0', { signal });
  expect(Object.keys(metadata.annotations ?? {}).filter((name) => name.includes('hooks'))).toEqual([]);
});

test('what the drain of a maintenance waits for is on the MachineConfigNode until that ends, whoever drains', {
  timeout: patience(120_000),
}, async () => {
  await fleet.addPool('emptied');
  await fleet.addNode('emptied-0', 'emptied');
  await blockDrain(fleet.client, 'emptied-0', signal);
  const mcn = () => fleet.client.get(MachineConfigNodes, 'emptied-0', { signal });
  const drained = async () =>
    (await mcn()).status?.conditions?.find(({ type }) => type === 'MaintenanceDrained')?.status;
  const isDrained = (status: string | undefined) =>
    expect.poll(drained, { timeout: patience(60_000), interval: 50 }).toBe(status);

  const start = ['maintenance', 'start', 'emptied-0', '--reason', 'disk', '--yes', '--timeout', '2s'];
  const { exitCode, stderr } = await fleet.shale(...start);
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('not drained after 2s')]);
  await isDrained('False');
  const budget = 'PodDisruptionBudget held-emptied-0 (allows 0 disruptions)';
  expect((await mcn()).status?.maintenanceDrain).toEqual({
    pods: 1,
    waitsFor: [{ pod: 'default/held-emptied-0', reason: budget }],
  });
  const { stdout } = await fleet.shale('status', 'emptied-0');
  expect(stdout).toMatch(/blocked by +pod default\/held-emptied-0: PodDisruptionBudget held-emptied-0/);
  await fleet.shale('maintenance', 'end', 'emptied-0');
  await isDrained(undefined);
  expect((await mcn()).status?.maintenanceDrain).toBeUndefined();

  // As the Node Maintenance Operator does.
  const apiVersion = 'nodemaintenance.medik8s.io/v1beta1';
  const maintenance = { apiVersion, kind: 'NodeMaintenance', metadata: { name: 'empty' } };
  await fleet.client.create(NodeMaintenances, { ...maintenance, spec: { nodeName: 'emptied-0' } } as never, {
    signal,
  });
  await fleet.patchNode('emptied-0', { spec: { unschedulable: true } });
  await isDrained('False');
  await fleet.client.delete(Pods, 'held-emptied-0', { namespace: 'default', signal });
  await isDrained('True');
  await fleet.client.delete(NodeMaintenances, 'empty', { signal });
  await fleet.patchNode('emptied-0', { spec: { unschedulable: null } });
  await isDrained(undefined);
});
