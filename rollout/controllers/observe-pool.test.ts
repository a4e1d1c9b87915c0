import { beforeEach, describe, expect, it } from 'vitest';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aRenderedConfig,
  condition,
  REBOOT,
} from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;
const WORKER = 'node-role.kubernetes.io/worker';
const CONFIG = 'rendered-worker-2';
const START = Date.parse('2026-06-01T00:00:00Z');
const kind = (group: string, version: string, name: string): Kind<KubernetesObject> => ({
  group,
  version,
  kind: name,
  plural: `${name.toLowerCase()}s`,
  namespaced: name === 'Machine',
});
const OpenShiftMachines = kind('machine.openshift.io', 'v1beta1', 'Machine');
const ClusterApiMachines = kind('cluster.x-k8s.io', 'v1beta2', 'Machine');
const NodeMaintenances = kind('nodemaintenance.medik8s.io', 'v1beta1', 'NodeMaintenance');

let cluster: MemoryCluster;
let operator: SteppedOperator;
let clock: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  clock = START;
  operator = steppedOperator(cluster, () => clock);
  cluster.put(MachineConfigs, aRenderedConfig(CONFIG));
  cluster.put(
    MachineConfigPools,
    aPool('worker', {
      configuration: { name: CONFIG },
      nodeSelector: { matchLabels: { [WORKER]: '' } },
      maxUnavailable: 2,
    }),
  );
});

/** A node that has staged the target and needs a reboot for it. */
function putStaged(name: string, annotations: Readonly<Record<string, string>> = {}, ready = true): void {
  const metadata = { name, uid: `uid-${name}`, labels: { [WORKER]: '' }, annotations };
  const status = { conditions: [condition('Ready', ready ? 'True' : 'False')] };
  cluster.put(Nodes, aNode(name, { metadata, status }));
  const plan = { config: CONFIG, staged: true, actions: [...REBOOT], causes: [], source: 'test' };
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode(
      name,
      { configVersion: { desired: CONFIG } },
      { plan, conditions: [condition('NodeDegraded', 'False')] },
    ),
  );
}

/** A node that runs the target. */
function putUpdated(name: string): void {
  putStaged(name);
  const status = {
    configVersion: { current: CONFIG, desired: CONFIG },
    conditions: [condition('Updated')],
  };
  cluster.put(MachineConfigNodes, aMachineConfigNode(name, { configVersion: { desired: CONFIG } }, status));
}

function putMaintenance(nodeName: string): void {
  cluster.put(NodeMaintenances, {
    apiVersion: 'nodemaintenance.medik8s.io/v1beta1',
    kind: 'NodeMaintenance',
    metadata: { name: 'm' },
    spec: { nodeName },
  } as KubernetesObject);
}

function putMachine(of: Kind<KubernetesObject>, name: string, isDeleted: boolean): void {
  const deletion = isDeleted ? { deletionTimestamp: '2026-06-01T00:00:00Z' } : {};
  const metadata = { name, namespace: 'machines', ...deletion };
  cluster.put(of, { apiVersion: `${of.group}/${of.version}`, kind: of.kind, metadata });
}

const openShift = (machine: string) => ({ 'machine.openshift.io/machine': `machines/${machine}` });
const clusterApi = (machine: string) => ({
  'cluster.x-k8s.io/machine': machine,
  'cluster.x-k8s.io/cluster-namespace': 'machines',
});

async function pass(): Promise<void> {
  operator.catchUp();
  clock += 1_000;
  await operator.pools.reconcile('worker', signal);
}

const isCordoned = (name: string) => cluster.get(Nodes, name)?.spec?.unschedulable === true;
const isLeased = (name: string) => cluster.get(Leases, `node-${name}`) !== undefined;
const updating = () =>
  cluster.get(MachineConfigPools, 'worker')?.status?.conditions?.find(({ type }) => type === 'Updating')
    ?.message;

it('no node acts before the policies for its pool are recorded', async () => {
  const recorded = (pools: string[]): MachineConfiguration => ({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    status: { policyDigest: 'sha256:c', poolPolicies: [{ policyDigest: 'sha256:p', pools, policies: {} }] },
  });
  cluster.put(MachineConfigurations, recorded(['other']));
  putStaged('a');
  await pass();
  await pass();
  expect(updating()).toContain('the disruption policies for this pool are not in effect yet');
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.grant).toBeUndefined();

  cluster.put(MachineConfigurations, recorded(['other', 'worker']));
  for (let i = 0; i < 4; i += 1) await pass();
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.policyDigest).toBe('sha256:p');
  expect(isCordoned('a')).toBe(true);
});

it('no node acts while nodes are not managed, and its lease is given back', async () => {
  const asks = (managementState: string): MachineConfiguration => ({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: { managementState },
  });
  cluster.put(MachineConfigurations, asks('Unmanaged'));
  putStaged('a');
  for (let i = 0; i < 3; i += 1) await pass();
  expect(updating()).toContain('spec.managementState of the MachineConfiguration is Unmanaged');
  expect([isCordoned('a'), isLeased('a')]).toEqual([false, false]);

  cluster.put(MachineConfigurations, asks('Managed'));
  for (let i = 0; i < 3; i += 1) await pass();
  expect([isCordoned('a'), isLeased('a')]).toEqual([true, true]);

  // Nothing is granted yet, so it returns to service.
  cluster.put(MachineConfigurations, asks('Removed'));
  for (let i = 0; i < 3; i += 1) await pass();
  expect(updating()).toContain('Shale refuses');
  if (cluster.get(MachineConfigNodes, 'a')?.spec.grant === undefined) expect(isCordoned('a')).toBe(false);
});

it('a Ready node in maintenance gets no target before it is cordoned, and gets it once that ends', async () => {
  const next = 'rendered-worker-9';
  putUpdated('a');
  putMaintenance('a');
  await pass();
  cluster.put(MachineConfigs, aRenderedConfig(next));
  const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
  cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, configuration: { name: next } } });
  clock += 10_000;
  for (let i = 0; i < 3; i += 1) await pass();
  const desired = () => cluster.get(MachineConfigNodes, 'a')?.spec.configVersion.desired;
  expect(desired()).toBe(CONFIG);

  cluster.remove(NodeMaintenances, 'm');
  clock += 10_000;
  for (let i = 0; i < 3; i += 1) await pass();
  expect(desired()).toBe(next);
});

it('a node whose Machine is deleted after Shale has cordoned it is given back, and not granted its reboot', async () => {
  const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
  const hooked = (hooksBefore: string[]) =>
    cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, shale: { hooksBefore } } });
  hooked(['lb']);
  putStaged('a', openShift('m-a'));
  putMachine(OpenShiftMachines, 'm-a', false);
  for (let i = 0; i < 2; i += 1) await pass();
  expect([isCordoned('a'), isLeased('a')]).toEqual([true, true]);

  putMachine(OpenShiftMachines, 'm-a', true);
  clock += 31_000;
  hooked([]);
  await pass();
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.grant).toBeUndefined();
  expect(isLeased('a')).toBe(false);
});

describe('what only Ignition sets up', () => {
  const DISKS = 'rendered-worker-3';
  const storage = { disks: [{ device: '/dev/sdb', wipeTable: true }] };
  const withDisks = { config: { ignition: { version: '3.5.0' }, storage } };
  const source = [{ name: '50-disks' }];
  const why =
    /^rendered-worker-3 can't be applied to a running node, .*MachineConfig 50-disks: \$\.storage\.disks: /;
  const irreconcilable = () => cluster.get(MachineConfigNodes, 'a')?.spec.irreconcilable;
  const verdict = (type: string) =>
    cluster.get(MachineConfigPools, 'worker')?.status?.conditions?.find((each) => each.type === type);

  beforeEach(() => {
    cluster.put(MachineConfigs, { ...aRenderedConfig(DISKS), spec: withDisks });
    cluster.put(MachineConfigs, { ...aRenderedConfig('50-disks'), spec: withDisks });
    const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    cluster.put(MachineConfigPools, {
      ...pool,
      spec: { ...pool.spec, configuration: { name: DISKS, source } },
    });
  });

  it('is reported of a new node by pool and node, and its admin can say that it is set up', async () => {
    const metadata = { name: 'a', uid: 'uid-a', labels: { [WORKER]: '' } };
    cluster.put(Nodes, aNode('a', { metadata }));
    await pass();
    await pass();
    expect(irreconcilable()).toMatch(why);
    expect(verdict('Updated')?.status).toBe('False');
    expect(verdict('Degraded')).toMatchObject({
      status: 'True',
      message: `refused by a: ${irreconcilable()}`,
    });
    expect(updating()).toMatch(/; a: rendered-worker-3 can't be applied to a running node/);
    const annotations = { 'shale.dev/provisioned-config': DISKS };
    cluster.put(Nodes, aNode('a', { metadata: { ...metadata, annotations } }));
    await pass();
    await pass();
    expect(irreconcilable()).toBeUndefined();
    expect(verdict('Degraded')?.status).toBe('False');
  });

  it('holds a node that comes from another pool, before it is leased or cordoned', async () => {
    putStaged('a');
    const staged = cluster.get(MachineConfigNodes, 'a') ?? aMachineConfigNode('a');
    const status = { ...staged.status, configVersion: { current: CONFIG, desired: CONFIG } };
    cluster.put(MachineConfigNodes, { ...staged, spec: { ...staged.spec, pool: { name: 'infra' } }, status });
    for (let index = 0; index < 3; index += 1) await pass();
    expect(irreconcilable()).toMatch(why);
    expect(cluster.get(MachineConfigNodes, 'a')?.spec).toMatchObject({
      pool: { name: 'worker' },
      configVersion: { desired: DISKS },
    });
    expect([isLeased('a'), isCordoned('a')]).toEqual([false, false]);
  });
});

describe('a node whose Machine is being deleted', () => {
  it.each([
    ['OpenShift', OpenShiftMachines, openShift('m-a')],
    ['Cluster API', ClusterApiMachines, clusterApi('m-a')],
  ])(
    'is skipped (%s): it is neither leased nor cordoned, and another one is updated',
    async (_what, of, refers) => {
      putStaged('a', refers);
      putStaged('b', of === OpenShiftMachines ? openShift('m-b') : clusterApi('m-b'));
      putMachine(of, 'm-a', true);
      putMachine(of, 'm-b', false);
      for (let index = 0; index < 4; index += 1) await pass();
      expect([isLeased('a'), isCordoned('a')]).toEqual([false, false]);
      expect([isLeased('b'), isCordoned('b')]).toEqual([true, true]);
      expect(updating()).toMatch(/; a: skipped: its Machine is being deleted/);
    },
  );

  it('is not waited for once it is down', async () => {
    putStaged('a', openShift('m-a'), false);
    putMachine(OpenShiftMachines, 'm-a', true);
    await pass();
    expect(isLeased('a')).toBe(false);
    const status = cluster.get(MachineConfigPools, 'worker')?.status;
    expect(status?.conditions?.find(({ type }) => type === 'Updated')).toMatchObject({
      status: 'True',
      message: `0 of 1 node runs ${CONFIG}; a is not waited for: its Machine is being deleted`,
    });
  });

  it('is asked about again after half a minute, and updated when its Machine stays', async () => {
    putStaged('a', openShift('m-a'));
    putMachine(OpenShiftMachines, 'm-a', true);
    await pass();
    await pass();
    putMachine(OpenShiftMachines, 'm-a', false);
    await pass();
    expect(isLeased('a')).toBe(false);
    clock += 30_000;
    operator.membership.wake('a');
    await pass();
    await pass();
    expect(isLeased('a')).toBe(true);
  });

  it.each([
    ['without a Machine', {}],
    ['whose Machine nobody has', openShift('gone')],
    ['whose reference has no namespace', { 'machine.openshift.io/machine': 'gone' }],
    ['whose Machine has no namespace', { 'cluster.x-k8s.io/machine': 'm' }],
  ])('a node %s is updated', async (_what, refers) => {
    putStaged('a', refers);
    await pass();
    expect([isLeased('a'), isCordoned('a')]).toEqual([true, true]);
  });
});

describe('a node with an active NodeMaintenance', () => {
  it('is skipped, and the next one is updated', async () => {
    putStaged('a');
    putStaged('b');
    putMaintenance('a');
    await pass();
    expect([isLeased('a'), isCordoned('a')]).toEqual([false, false]);
    expect(isLeased('b')).toBe(true);
    expect(updating()).toMatch(/a: skipped: a NodeMaintenance is active/);
  });

  it('is skipped, too, where no other node waits for its update', async () => {
    putStaged('a');
    putUpdated('b');
    putMaintenance('a');
    await pass();
    expect([isLeased('a'), isCordoned('a')]).toEqual([false, false]);
    expect(updating()).toMatch(/a: skipped: a NodeMaintenance is active/);
  });

  it('is counted once where it has its update already', async () => {
    putUpdated('b');
    await pass();
    clock += 60_000;
    await pass();
    putStaged('a');
    putMaintenance('b');
    clock += 60_000;
    await pass();
    expect(cluster.get(MachineConfigPools, 'worker')?.status).toMatchObject({
      machineCount: 2,
      updatedMachineCount: 1,
    });
  });
});

it('a node whose lease somebody else holds is not cordoned, and the pool says who holds it', async () => {
  putStaged('a');
  const time = new Date(START).toISOString();
  cluster.put(Leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'node-a', uid: 'uid-lease' },
    spec: { holderIdentity: 'ops', leaseDurationSeconds: 3_600, acquireTime: time, renewTime: time },
  });
  await pass();
  expect(isCordoned('a')).toBe(false);
  expect(updating()).toMatch(/a: skipped: its lease is held by ops/);
});

it('a failing API server’s silence does not count as a no', async () => {
  putStaged('a', openShift('m-a'));
  cluster.trouble = () => 'unavailable';
  await expect(pass()).rejects.toMatchObject({
    errors: expect.arrayContaining([expect.objectContaining({ status: 503 })]),
  });
  expect(isCordoned('a')).toBe(false);
});
