/**
 * The extension between two API servers: what it writes in the workload cluster, what the real operator makes of that,
 * and what stays when the management cluster, a replica or a machine goes away in the middle.
 */
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { capiNames } from '../../api/cluster-api.ts';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { NotKnownNow } from '../../capi/clusters/clusters.ts';
import { LiveClusters } from '../../capi/clusters/live-clusters.ts';
import { ManagementCluster } from '../../capi/clusters/management.ts';
import { WorkloadClusters } from '../../capi/clusters/workload-clusters.ts';
import type { UpdateMachineAnswer } from '../../capi/contract/answers.ts';
import { passOver } from '../../capi/loop.ts';
import { Discovery } from '../../cluster/discovery.ts';
import { startApiServer } from '../../workshop/apiserver/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { ManagementUnderTest, providerIDOf } from '../fixtures/capi/management-cluster.ts';
import { streams as osImageStreams } from '../fixtures/capi/observed-machine.ts';
import { REBOOT, RESTART } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { log, NAMESPACE } from './cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const COMPONENT = path.join(import.meta.dirname, '../../manifests/components/cluster-api-workload');
const POOL = 'workers';
const OWNER = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } as const;
const OWN_CONFIG = `50-cluster-api-${POOL}`;
const CHRONY = '/etc/chrony.conf';
const BOOTSTRAP = { '/etc/bootstrap.sh': 'came with the machine' };
const MACHINES = ['one', 'two'];

let fleet: FleetUnderTest;
let management: ManagementUnderTest;
const opened: WorkloadClusters[] = [];

/** A replica of the extension. */
function startReplica(kind: typeof ManagementCluster = ManagementCluster) {
  const { client, connection } = management;
  const managed = new kind(client, new Discovery(connection));
  const workloads = new WorkloadClusters(managed, NAMESPACE);
  opened.push(workloads);
  const warnings = new Set<string>();
  const warning = ({ metadata: { name } }: KubernetesObject, reason: string, message: string) =>
    warnings.add(`${name} ${reason}: ${message}`);
  const events = { normal: () => undefined, warning };
  const reported = new Map();
  const now = () => new Date();
  const options = { management: managed, workloads, events, log, extensionConfig: 'shale', reported, now };
  const clusters = new LiveClusters(options);
  const call = (name: string): Promise<UpdateMachineAnswer> => {
    const machine = { namespace: 'default', name };
    return clusters.updateMachine({ cluster: management.cluster, machine } as never, deadline(30_000));
  };
  return {
    clusters,
    call,
    warnings,
    pass: () =>
      passOver({ ...options, metrics: { passFailed: () => undefined }, intervalMs: 0 }, deadline(60_000)),
  };
}

/** Calls the hook as Cluster API does, sooner than it asks for. @returns its answer once it is not in progress. */
async function callUntilEnd(call: () => Promise<UpdateMachineAnswer>): Promise<UpdateMachineAnswer> {
  return vi.waitFor(
    async () => {
      const answer = await call();
      if (answer.kind === 'inProgress') throw new Error(`still in progress: ${answer.message}`);
      return answer;
    },
    { timeout: patience(60_000), interval: 50 },
  );
}

async function until(call: () => Promise<UpdateMachineAnswer>, message: RegExp): Promise<void> {
  await vi.waitFor(async () => expect((await call()).message).toMatch(message), {
    timeout: patience(60_000),
    interval: 50,
  });
}

const nodeOf = (name: string) => fleet.client.get(MachineConfigNodes, name, { signal: deadline(10_000) });
const handedOver = async (name: string) =>
  (await nodeOf(name)).metadata.annotations?.[annotations.clusterApiUpdate] !== undefined;
const isHeldOff = async (name: string) =>
  (await management.machine(name)).metadata.annotations?.[capiNames.skipRemediation] !== undefined;
const ownConfig = () => fleet.client.find(MachineConfigs, OWN_CONFIG, { signal: deadline(10_000) });
const filesOf = async () =>
  (await ownConfig())?.spec.config?.storage?.files?.map(({ path: file, ...rest }) => [
    file,
    rest['contents'],
  ]);
const contents = (text: string) => ({
  source: `data:;base64,${Buffer.from(`${text}\n`).toString('base64')}`,
});
const running = async (name: string) => (await nodeOf(name)).status?.configVersion?.current;

beforeEach(async () => {
  const signal = deadline(120_000);
  fleet = await startFleetUnderTest(signal);
  await applyObjects(fleet.client, await readKustomization(COMPONENT), { log, signal });
  management = await ManagementUnderTest.start(fleet.cluster.kubeconfig(), signal);
  await management.createDeployment(OWNER.name, { [CHRONY]: 'pool a', ...BOOTSTRAP });
  await fleet.addPool(POOL);
  for (const name of MACHINES) {
    await fleet.addNode(name, POOL, { script: { actions: RESTART } });
    await fleet.patchNode(name, { spec: { providerID: providerIDOf(name) } });
    await management.createMachine(name, OWNER.name, name);
  }
  await fleet.setPool(POOL, { drivenBy: OWNER });
});

afterEach(async () => {
  for (const each of opened.splice(0)) each.close();
  await management.stop();
  await fleet.stop();
});

/** Another chrony.conf, which goes to the first machine. */
async function startChange(): Promise<void> {
  await management.changeTemplate(OWNER.name, { [CHRONY]: 'pool b', ...BOOTSTRAP });
  await management.startUpdate('one', OWNER.name);
}

test('a changed file goes to one machine after the other, and to no other part of it', async () => {
  const { call, pass } = startReplica();
  const before = await running('two');
  await startChange();
  await until(() => call('one'), /stag|apply|serve|updated/);
  expect(await callUntilEnd(() => call('one'))).toEqual({ kind: 'done', message: 'updated' });
  expect(await filesOf()).toEqual([[CHRONY, contents('pool b')]].map(([file, text]) => [file, text]));
  expect([await handedOver('one'), await isHeldOff('one')]).toEqual([false, false]);
  await management.endUpdate('one');
  await pass();
  expect(await running('two')).toBe(before);
  expect(fleet.order()).not.toContain('two');

  await management.startUpdate('two', OWNER.name);
  expect(await callUntilEnd(() => call('two'))).toEqual({ kind: 'done', message: 'updated' });
  expect(await running('two')).toBe(await running('one'));
  expect(fleet.mostCordoned(POOL)).toBe(0);
});

test('a management cluster that is away: what was handed over is finished, and nothing else begins', async () => {
  const { call, pass } = startReplica();
  fleet.script('one', { actions: RESTART, waitsBefore: 'acting' });
  const before = await running('one');
  await startChange();
  await until(() => call('one'), /staged|about to apply/);
  expect(await isHeldOff('one')).toBe(true);
  await management.stop();
  fleet.script('one', { actions: RESTART });

  await vi.waitFor(async () => expect(await running('one')).not.toBe(before), { timeout: patience(60_000) });
  await expect(call('one')).rejects.toThrow(new NotKnownNow('the management cluster does not answer'));
  await pass();
  expect(await handedOver('one')).toBe(true);
  expect(await running('two')).toBe(before);
});

test('another version is done once the kubelet reports it, one drained node after the other', async () => {
  const { call, clusters } = startReplica();
  const signal = deadline(120_000);
  const { serverVersion } = await clusters.readWorkload(management.cluster, signal);
  const version = serverVersion.replace(/\+.*/, '');
  const { apiVersion, kind, metadata, ...streams } = osImageStreams(version);
  const { name } = metadata;
  const given = { apiVersion, kind, metadata: { name, namespace: NAMESPACE }, ...streams };
  await fleet.client.create(ConfigMaps, given as never, { namespace: NAMESPACE, signal });
  for (const machine of MACHINES) fleet.script(machine, { actions: REBOOT });
  await management.changeTemplate(OWNER.name, { [CHRONY]: 'pool a', ...BOOTSTRAP }, version);

  for (const [at, machine] of MACHINES.entries()) {
    await management.startUpdate(machine, OWNER.name);
    await until(() => call(machine), new RegExp(`its kubelet reports .*, and ${version} is awaited`));
    expect(fleet.order()).toEqual(MACHINES.slice(0, at + 1));
    expect([await handedOver(machine), await isHeldOff(machine)]).toEqual([true, true]);
    const status = { nodeInfo: { kubeletVersion: version } };
    await fleet.client.patchStatus(Nodes, machine, { type: 'merge', body: { status } }, { signal });
    expect(await callUntilEnd(() => call(machine))).toEqual({ kind: 'done', message: 'updated' });
    await management.endUpdate(machine);
  }
  const pool = await fleet.client.get(MachineConfigPools, POOL, { signal });
  expect(pool.spec.osImageStream).toEqual({ name: version });
  expect(fleet.mostCordoned(POOL)).toBe(1);
});

test('new machines without the startup taint take their first config one after the other', async () => {
  const { pass } = startReplica();
  for (const name of ['new-1', 'new-2']) {
    await fleet.addNode(name, POOL, { script: { actions: RESTART }, settled: false });
    await fleet.patchNode(name, { spec: { providerID: providerIDOf(name) } });
    await management.createMachine(name, OWNER.name, name);
  }
  await pass();
  const wanted = await running('one');
  await vi.waitFor(
    async () => {
      await pass();
      const handed = [await handedOver('new-1'), await handedOver('new-2')];
      expect(handed).not.toEqual([true, true]);
      expect([await running('new-1'), await running('new-2')]).toEqual([wanted, wanted]);
    },
    { timeout: patience(60_000), interval: 100 },
  );
  await vi.waitFor(
    async () => {
      await pass();
      for (const name of ['new-1', 'new-2'])
        expect([await handedOver(name), await isHeldOff(name)]).toEqual([false, false]);
    },
    { timeout: patience(60_000), interval: 100 },
  );
});

test('two replicas at once write the same', async () => {
  const replicas = [startReplica(), startReplica()];
  await startChange();
  const answers = await Promise.all(
    replicas.map(({ call, pass }) =>
      callUntilEnd(async () => {
        const [answer] = await Promise.all([call('one'), pass()]);
        return answer;
      }),
    ),
  );
  expect(answers).toEqual(replicas.map(() => ({ kind: 'done', message: 'updated' })));
  expect(await filesOf()).toEqual([[CHRONY, contents('pool b')]]);
  expect([await handedOver('one'), await isHeldOff('one')]).toEqual([false, false]);
  const { metadata } = (await ownConfig()) ?? {};
  expect(metadata?.generation).toBe(1);
});

test('what is handed over during a pass stays so', async () => {
  const { call } = startReplica();
  let isFirst = true;
  class Interrupted extends ManagementCluster {
    override async machinesOf(...asked: Parameters<ManagementCluster['machinesOf']>) {
      const machines = await super.machinesOf(...asked);
      if (isFirst) {
        isFirst = false;
        await startChange();
        await vi.waitFor(
          async () => {
            await call('one');
            expect(await handedOver('one')).toBe(true);
          },
          { timeout: patience(15_000), interval: 50 },
        );
      }
      return machines;
    }
  }
  await startReplica(Interrupted).pass();
  expect(await handedOver('one')).toBe(true);
});

test('a machine that is deleted in the middle, and a Cluster that is paused, are taken back', async () => {
  const { call, pass } = startReplica();
  for (const name of MACHINES) fleet.script(name, { actions: RESTART, waitsBefore: 'staging' });
  await startChange();
  await management.startUpdate('two', OWNER.name);
  for (const name of MACHINES) await until(() => call(name), /stages the update/);
  await pass();
  expect([await handedOver('one'), await handedOver('two')]).toEqual([true, true]);

  await management.deleteMachine('one');
  await pass();
  expect([await handedOver('one'), await handedOver('two')]).toEqual([false, true]);
  await management.pause(true);
  await management.changeTemplate(OWNER.name, { [CHRONY]: 'pool c', ...BOOTSTRAP });
  await pass();
  expect([await handedOver('two'), await isHeldOff('two')]).toEqual([false, false]);
  expect(await filesOf()).toEqual([[CHRONY, contents('pool b')]]);
  expect((await call('two')).message).toMatch(/is paused$/);

  await management.pause(false);
  await pass();
  expect(await filesOf()).toEqual([[CHRONY, contents('pool c')]]);
});

test('a machine of which nobody can tell what it had is not called updated', async () => {
  const { call } = startReplica();
  await startChange();
  await management.deleteOlderSets(OWNER.name);
  expect(await callUntilEnd(() => call('one'))).toEqual({
    kind: 'failure',
    message: expect.stringMatching(
      /^MachineDeployment default\/workers has no other MachineSet .*, so nobody can tell/,
    ),
  });
  expect([await handedOver('one'), await ownConfig()]).toEqual([false, undefined]);
});

test('a node that fails is reported, and given back', async () => {
  const { call, warnings } = startReplica();
  fleet.script('one', { actions: RESTART, fails: 'chronyd is not active', givesUp: true });
  await startChange();
  expect(await callUntilEnd(() => call('one'))).toEqual({
    kind: 'failure',
    message: expect.stringContaining('chronyd is not active'),
  });
  expect([...warnings]).toEqual([expect.stringMatching(/^one InPlaceUpdateFailed: .*chronyd is not active/)]);
  await vi.waitFor(
    async () => {
      await call('one');
      expect([await handedOver('one'), await isHeldOff('one')]).toEqual([false, false]);
    },
    { timeout: patience(60_000), interval: 100 },
  );
});

test('what is read of a workload cluster', async () => {
  const { clusters } = startReplica();
  const read = () => clusters.readWorkload(management.cluster, deadline(30_000));
  const state = await read();
  expect(state.machineConfigNodes.map(({ metadata }) => metadata.name).toSorted()).toEqual(MACHINES);
  expect(
    state.objects.some(({ kind, metadata }) => kind === 'MachineConfigPool' && metadata.name === POOL),
  ).toBe(true);
  const [rendered] = state.rendered.keys();
  expect(rendered).toMatch(/^rendered-/);

  const without = await startApiServer();
  try {
    await management.writeKubeconfig(without.kubeconfig());
    expect(await read()).toMatchObject({
      objects: [],
      machineConfigNodes: [],
      serverVersion: expect.any(String),
    });
  } finally {
    await without.stop();
  }
  await expect(read()).rejects.toThrow(new NotKnownNow('the workload cluster default/prod does not answer'));
  await management.writeKubeconfig('users: [{user: {token: top-secret}}]');
  await expect(read()).rejects.toThrow(/^Secret default\/prod-kubeconfig: the kubeconfig can't be used/);
});

test('a workload cluster without the component is named with what it lacks', async () => {
  await fleet.client.delete(
    {
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      kind: 'ClusterRoleBinding',
      plural: 'clusterrolebindings',
      namespaced: false,
    },
    'shale-cluster-api-workload',
    { signal: deadline(10_000) },
  );
  const { clusters, call, warnings } = startReplica();
  await expect(clusters.readWorkload(management.cluster, deadline(30_000))).rejects.toThrow(
    /^the workload cluster default\/prod refuses a request: .*; it may lack manifests\/components\/cluster-api-workload$/,
  );
  await management.startUpdate('one', OWNER.name);
  await expect(call('one')).rejects.toThrow(NotKnownNow);
  expect([...warnings]).toEqual([
    expect.stringMatching(/^one InPlaceUpdateFailed: the workload cluster default\/prod refuses a request/),
  ]);
  expect(await fleet.client.find(Nodes, 'one', { signal: deadline(10_000) })).toBeDefined();
});
