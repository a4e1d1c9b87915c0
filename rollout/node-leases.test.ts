import { describe, expect, it } from 'vitest';
import { type Lease, Leases } from '../api/kubernetes.ts';
import { MemoryCluster, SteppedInformer } from '../test/fixtures/fleet/memory-cluster.ts';
import { FreshCache } from './fresh-cache.ts';
import { holdingOf, leaseNameOf, NodeLeases, nodeOfLease } from './node-leases.ts';
import { defaultRolloutOptions } from './options.ts';

const RENEWED = '2026-06-01T00:00:00.000000Z';
const lease = (spec: NonNullable<Lease['spec']>): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a' },
  spec,
});
const held = (holderIdentity: string) =>
  lease({ holderIdentity, renewTime: RENEWED, leaseDurationSeconds: 60 });
const at = (seconds: number) => Date.parse(RENEWED) + seconds * 1000;

it.each([
  ['no lease', undefined, 0, { by: 'nobody' }],
  ['ours', held('us'), 59, { by: 'us' }],
  [
    'ours, with its beginning',
    lease({ holderIdentity: 'us', acquireTime: RENEWED, renewTime: RENEWED, leaseDurationSeconds: 60 }),
    1,
    { by: 'us', since: at(0) },
  ],
  ['ours, expired', held('us'), 60, { by: 'nobody', left: true }],
  ["another's", held('them'), 59, { by: 'other', holder: 'them' }],
  ["another's, expired", held('them'), 60, { by: 'nobody' }],
  [
    'released',
    lease({ holderIdentity: '', renewTime: RENEWED, leaseDurationSeconds: 60 }),
    0,
    { by: 'nobody' },
  ],
  ['of a machine that was switched off', held('shale-powered-off'), 59, { by: 'powered-off' }],
  ['of a machine that was switched off, expired', held('shale-powered-off'), 60, { by: 'nobody' }],
  ['without an end', lease({ holderIdentity: 'them' }), 0, { by: 'other', holder: 'them' }],
])('a lease: %s', (_what, subject, seconds, holding) => {
  expect(holdingOf(subject, 'us', at(seconds))).toEqual(holding);
});

it('has the name that the medik8s operators look for', () => {
  expect(leaseNameOf('worker-0')).toBe('node-worker-0');
  expect(nodeOfLease(leaseNameOf('worker-0'))).toBe('worker-0');
  expect(nodeOfLease('shale-operator')).toBeUndefined();
});

const HOUR = 3_600_000;
const signal = new AbortController().signal;

/** The operator's leases, by clocks that a test sets. */
function leasesOfOperator() {
  const cluster = new MemoryCluster();
  const informer = new SteppedInformer(cluster, Leases);
  let clock = at(0);
  const clocks = { now: () => clock, monotonic: () => 0 };
  const parts = {
    client: cluster.client(),
    cache: new FreshCache(informer),
    options: defaultRolloutOptions.leases,
  };
  const leases = new NodeLeases({ ...parts, clocks });
  return {
    leases,
    setClock: (ms: number) => {
      clock += ms;
    },
    /** Another writes the lease as it would be now. */
    othersLease: () => void cluster.put(Leases, held('them')),
    inCluster: () => cluster.get(Leases, 'node-a'),
    catchUp: () => informer.catchUp(),
  };
}

it('leaves a lease to its holder when the clock is set forward', async () => {
  const { leases, othersLease, catchUp, setClock } = leasesOfOperator();
  othersLease();
  catchUp();
  setClock(HOUR);
  expect(leases.holding('a')).toEqual({ by: 'other', holder: 'them' });
  expect(await leases.acquire('a', { reason: 'update' }, signal)).toEqual({ by: 'other', holder: 'them' });
});

it('renews when the clock is set back: to others the lease would run out', async () => {
  const { leases, inCluster, catchUp, setClock } = leasesOfOperator();
  await leases.acquire('a', { reason: 'update' }, signal);
  catchUp();
  setClock(-HOUR);
  await leases.acquire('a', { reason: 'update' }, signal);
  expect(inCluster()?.spec?.renewTime).toMatch(/^2026-05-31T23:00:00/);
});

describe('the lease of a node', () => {
  const third = (defaultRolloutOptions.leases.seconds * 1000) / 3;

  it('is acquired, and renewed once a third of its time is over', async () => {
    const { leases, inCluster, catchUp, setClock } = leasesOfOperator();
    expect(await leases.acquire('a', { reason: 'update to x' }, signal)).toEqual({ by: 'us' });
    expect(inCluster()?.spec).toMatchObject({
      holderIdentity: defaultRolloutOptions.leases.holder,
      leaseDurationSeconds: defaultRolloutOptions.leases.seconds,
    });
    catchUp();
    const first = inCluster()?.metadata.resourceVersion;
    setClock(third - 1);
    expect(await leases.acquire('a', { reason: 'update to x' }, signal)).toEqual({ by: 'us' });
    expect(inCluster()?.metadata.resourceVersion).toBe(first);
    setClock(1);
    expect(await leases.acquire('a', { reason: 'update to x' }, signal)).toEqual({ by: 'us' });
    expect(inCluster()?.metadata.resourceVersion).not.toBe(first);
  });

  it('reports since when it is held; without a time, now', async () => {
    const { leases, catchUp, setClock, othersLease } = leasesOfOperator();
    expect(leases.takenAt('a')).toBe(at(0));
    await leases.acquire('a', { reason: 'update' }, signal);
    catchUp();
    setClock(5_000);
    expect(leases.takenAt('a')).toBe(at(0));
    othersLease();
    catchUp();
    expect(leases.takenAt('a')).toBe(at(5));
  });

  it('is ours until it is released, expired or not', async () => {
    const { leases, catchUp, setClock, inCluster } = leasesOfOperator();
    expect(leases.isOurs('a')).toBe(false);
    await leases.acquire('a', { reason: 'update' }, signal);
    catchUp();
    expect(leases.isOurs('a')).toBe(true);
    setClock(defaultRolloutOptions.leases.seconds * 1000);
    expect(leases.holding('a')).toEqual({ by: 'nobody', left: true });
    expect(leases.isOurs('a')).toBe(true);
    await leases.release('a', signal);
    expect(inCluster()?.spec?.holderIdentity ?? '').toBe('');
    // Before the watch shows it, too.
    expect(leases.isOurs('a')).toBe(false);
  });

  it('of another is neither ours nor released', async () => {
    const { leases, othersLease, catchUp, inCluster } = leasesOfOperator();
    othersLease();
    catchUp();
    expect(leases.isOurs('a')).toBe(false);
    await leases.release('a', signal);
    expect(inCluster()?.spec?.holderIdentity).toBe('them');
  });
});
