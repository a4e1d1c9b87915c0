import { beforeEach, expect, it } from 'vitest';
import { type Lease, Leases, Nodes } from '../../api/kubernetes.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { leaseNameOf } from '../node-leases.ts';

const signal = new AbortController().signal;
const HOUR = 3_600_000;
const OURS = 'shale-powered-off';

let cluster: MemoryCluster;
let operator: SteppedOperator;
/** ms since the epoch. */
let now: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = Date.parse('2026-06-01T00:00:00Z');
  startOperator();
});

function startOperator(): void {
  operator = steppedOperator(cluster, () => now);
  operator.catchUp();
}

function putNode(mark: string | undefined = JSON.stringify({ by: 'ann', reason: 'fan' })): void {
  const set = mark === '' ? {} : { [annotations.poweredOff]: mark };
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', uid: 'uid-a', annotations: set } }));
  operator.catchUp();
}

function putLease(holderIdentity: string, leaseDurationSeconds = 60): void {
  const time = new Date(now).toISOString();
  const metadata = { name: leaseNameOf('a'), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'uid-lease' };
  const spec = { holderIdentity, leaseDurationSeconds, acquireTime: time, renewTime: time };
  cluster.put(Leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
  operator.catchUp();
}

const lease = (): Lease | undefined => cluster.get(Leases, leaseNameOf('a'));
const holder = () => lease()?.spec?.holderIdentity;

async function pass(): Promise<unknown> {
  const result = await operator.poweredOff.reconcile('a', signal);
  operator.catchUp();
  return result;
}

it('the lease of a node that was switched off is held, by name of who did that, and renewed', async () => {
  putNode();
  expect(await pass()).toEqual({ kind: 'requeue', afterMs: HOUR / 3 });
  expect(lease()?.metadata.annotations).toEqual({
    [annotations.leaseReason]: `${OURS}: switched off on request by ann: fan`,
  });
  const first = lease()?.spec;
  expect(first).toMatchObject({ holderIdentity: OURS, leaseDurationSeconds: 3600 });
  expect(operator.leases.holding('a')).toEqual({ by: 'powered-off' });
  now += HOUR / 3;
  await pass();
  expect(lease()?.spec).toMatchObject({ acquireTime: first?.acquireTime });
  expect(lease()?.spec?.renewTime).not.toBe(first?.renewTime);
});

it('it is held for a mark that nobody can read, too', async () => {
  putNode('yes');
  await pass();
  expect(holder()).toBe(OURS);
});

it.each(['shale-maintenance/ann', 'node-maintenance', 'shale-operator'])(
  'the lease of %s stays, and is taken once it has run out',
  async (other) => {
    putLease(other);
    putNode();
    expect(await pass()).toEqual({ kind: 'requeue', afterMs: 30_000 });
    expect(holder()).toBe(other);
    now += 61_000;
    await pass();
    expect(holder()).toBe(OURS);
  },
);

it.each<[what: string, ends: () => void]>([
  ['the mark is removed', () => putNode('')],
  [
    'the node is deleted',
    () => {
      cluster.remove(Nodes, 'a');
      operator.catchUp();
    },
  ],
])('it is released when %s, by the next operator as well', async (_what, ends) => {
  for (const next of [() => undefined, startOperator]) {
    putNode();
    await pass();
    expect(holder()).toBe(OURS);
    ends();
    next();
    expect(await pass()).toEqual({ kind: 'done' });
    expect(lease()).toBeUndefined();
  }
});

it('the next operator goes on with it', async () => {
  putNode();
  await pass();
  const before = lease()?.spec?.acquireTime;
  now += HOUR / 2;
  startOperator();
  await pass();
  expect(lease()?.spec).toMatchObject({ holderIdentity: OURS, acquireTime: before });
  expect(Date.parse(lease()?.spec?.renewTime ?? '')).toBe(now);
});

it('the lease of a node that is not marked is left alone, whoever has it', async () => {
  putNode('');
  putLease('node-maintenance');
  await pass();
  expect(holder()).toBe('node-maintenance');
});
