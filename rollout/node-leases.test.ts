import { expect, it } from 'vitest';
import type { Lease } from '../api/kubernetes.ts';
import { holdingOf, leaseNameOf, nodeOfLease } from './node-leases.ts';

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
  ['without an end', lease({ holderIdentity: 'them' }), 0, { by: 'other', holder: 'them' }],
])('a lease: %s', (_what, subject, seconds, holding) => {
  expect(holdingOf(subject, 'us', at(seconds))).toEqual(holding);
});

it('has the name that the medik8s operators look for', () => {
  expect(leaseNameOf('worker-0')).toBe('node-worker-0');
  expect(nodeOfLease(leaseNameOf('worker-0'))).toBe('worker-0');
  expect(nodeOfLease('shale-operator')).toBeUndefined();
});
