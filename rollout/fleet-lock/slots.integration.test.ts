/** Lock services over HTTP, and operators that are killed between a request and its answer. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ConfigMaps, Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { FLEETLOCK_SLOTS_CONFIG_MAP } from '../../api/names.ts';
import { passOfDaemon } from '../../test/fixtures/fleet/daemon-pass.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { putNode, putPool } from '../../test/fixtures/fleet/pool-under-way.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { type LockService, startLockService } from '../../test/fixtures/lock-service.ts';
import { condition, REBOOT } from '../../test/fixtures/objects.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { fleetLockServers } from './servers.ts';

/** ms, longer than a slot is kept that nobody uses. */
const LATER = 61_000;
const within = { timeout: patience(5_000), interval: 5 };

let service: LockService;
let cluster: MemoryCluster;
let clock: number;
let operator: ReturnType<typeof steppedOperator>;

beforeEach(async () => {
  service = await startLockService(1);
  cluster = new MemoryCluster();
  clock = Date.now();
});
afterEach(() => service.stop());

function start(): void {
  const servers = fleetLockServers([service.url], {});
  operator = steppedOperator(cluster, () => clock, undefined, undefined, {}, servers);
}

/** Nodes that have staged an update that needs a reboot, in a pool that would disrupt all of them at once. */
function put(names: readonly string[], group?: string): void {
  putPool(cluster, 'worker');
  const fleetLock = { url: service.url, ...(group === undefined ? {} : { group }) };
  change(cluster, { maxUnavailable: names.length, shale: { fleetLock } });
  for (const name of names) {
    putNode(cluster, 'worker', name, 1, clock);
    const object = cluster.get(MachineConfigNodes, name);
    const plan = { config: 'rendered-worker-2', staged: true, causes: [], source: 'label' };
    if (object !== undefined)
      cluster.put(MachineConfigNodes, {
        ...object,
        status: { ...object.status, plan: { ...plan, actions: [...REBOOT] } },
      });
  }
}

function change(of: MemoryCluster, spec: object): void {
  const pool = of.get(MachineConfigPools, 'worker');
  if (pool !== undefined) of.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, ...spec } });
}

/** One pass over the pool and one over the slots. */
async function pass(): Promise<void> {
  // A status is not written twice in a moment.
  clock += 100;
  operator.catchUp();
  await operator.pools.reconcile('worker', deadline(10_000));
  operator.catchUp();
  await operator.slots.reconcile('slots', deadline(10_000)).catch(() => undefined);
}

const reboot = (name: string) => passOfDaemon(cluster, name, { actions: REBOOT, fails: false });
const isGranted = (name: string) => cluster.get(MachineConfigNodes, name)?.spec.grant !== undefined;
const isCordoned = (name: string) => cluster.get(Nodes, name)?.spec?.unschedulable === true;
const runs = (name: string) => cluster.get(MachineConfigNodes, name)?.status?.configVersion?.current;
const holders = (group = 'default') => [...(service.held.get(group) ?? [])];
const recorded = () => Object.keys(cluster.get(ConfigMaps, FLEETLOCK_SLOTS_CONFIG_MAP)?.data ?? {});
const until = (met: () => unknown) =>
  vi.waitUntil(async () => {
    await pass();
    return met();
  }, within);
const held = () => {
  const { status } = cluster.get(MachineConfigPools, 'worker') ?? {};
  return status?.conditions?.find(({ type }) => type === 'UpdatesHeld')?.message ?? '';
};

test('nodes reboot as the service has slots, each from before its cordon until it serves again', async () => {
  put(['a', 'b']);
  start();
  await until(() => isGranted('a'));
  expect(holders()).toEqual(['a']);
  await until(() => held().includes('all slots are locked already'));
  expect(isCordoned('b')).toBe(false);
  reboot('a');
  await until(() => !isCordoned('a'));
  clock += LATER;
  await until(() => isGranted('b'));
  expect(holders()).toEqual(['b']);
  expect(service.asked.indexOf('steady-state default a')).toBeLessThan(
    service.asked.lastIndexOf('pre-reboot default b'),
  );
  reboot('b');
  await until(() => !isCordoned('b'));
  clock += LATER;
  await until(() => recorded().length === 0);
  expect([runs('a'), runs('b'), ...holders()]).toEqual(['rendered-worker-2', 'rendered-worker-2']);
});

test('a service that is away holds reboots, and the pool says why', async () => {
  put(['a'], 'workers');
  service.answers = 500;
  start();
  await until(() => held().includes('it is unknown whether one is free'));
  expect(held()).toMatch(/FleetLock 127\.0\.0\.1:\d+: it answers 500/);
  expect(isCordoned('a')).toBe(false);
  service.answers = 'as the protocol says';
  clock += 30_000;
  await until(() => isGranted('a'));
  expect(holders('workers')).toEqual(['a']);
});

test('the operator after a crash gives back what the one before may have taken', async () => {
  put(['a']);
  // The service takes the request, and its answer never comes.
  service.answers = 'nothing';
  start();
  await until(() => service.asked.length > 0);
  expect(recorded()).toEqual(['a']);
  service.answers = 'as the protocol says';
  change(cluster, { paused: true });
  start();
  await pass();
  expect(service.asked).not.toContain('steady-state default a');
  clock += LATER;
  await until(() => recorded().length === 0);
  expect(service.asked).toContain('steady-state default a');
});

test('the operator after a crash keeps the slot of a node that reboots', async () => {
  put(['a']);
  start();
  await until(() => isGranted('a'));
  start();
  clock += LATER;
  await pass();
  expect(holders()).toEqual(['a']);
  reboot('a');
  await until(() => recorded().length === 0);
  expect(holders()).toEqual([]);
});

test.each<[string, () => void]>([
  [
    'its Node is deleted',
    () => {
      cluster.remove(Nodes, 'a');
      cluster.remove(MachineConfigNodes, 'a');
    },
  ],
  [
    'the pool names no service any more',
    () => {
      change(cluster, { shale: {} });
      reboot('a');
    },
  ],
  [
    'the node leaves the pool',
    () => {
      const node = cluster.get(Nodes, 'a');
      if (node !== undefined) cluster.put(Nodes, { ...node, metadata: { ...node.metadata, labels: {} } });
    },
  ],
  [
    'somebody takes its lease, and it is Ready',
    () => {
      const lease = cluster.get(Leases, 'node-a');
      if (lease !== undefined)
        cluster.put(Leases, { ...lease, spec: { ...lease.spec, holderIdentity: 'another' } });
    },
  ],
])('a slot is given back when %s in the middle', async (_what, happens) => {
  put(['a']);
  start();
  await until(() => isGranted('a'));
  happens();
  clock += LATER;
  await until(async () => {
    await operator.departed.reconcile('a', deadline(10_000));
    return recorded().length === 0;
  });
  expect(holders()).toEqual([]);
});

test('a node that does not come back from its reboot keeps its slot until it does', async () => {
  put(['a']);
  start();
  await until(() => isGranted('a'));
  const node = cluster.get(Nodes, 'a');
  if (node !== undefined)
    cluster.put(Nodes, { ...node, status: { conditions: [condition('Ready', 'False')] } });
  const lease = cluster.get(Leases, 'node-a');
  if (lease !== undefined)
    cluster.put(Leases, { ...lease, spec: { ...lease.spec, holderIdentity: 'another' } });
  clock += LATER;
  await until(() => !isGranted('a'));
  await pass();
  expect(holders()).toEqual(['a']);
  const back = cluster.get(Nodes, 'a');
  if (back !== undefined) cluster.put(Nodes, { ...back, status: { conditions: [condition('Ready')] } });
  await until(() => recorded().length === 0);
  expect(holders()).toEqual([]);
});

test('a slot of another group is given back before one of the new group is taken', async () => {
  put(['a']);
  start();
  operator.slots.stateOf('worker', 'a', 'a', { url: service.url, group: 'before' });
  await until(() => holders().length > 0);
  expect(holders('before')).toEqual([]);
  expect(service.asked).toEqual(['pre-reboot before a', 'steady-state before a', 'pre-reboot default a']);
});
