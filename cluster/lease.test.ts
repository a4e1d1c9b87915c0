import { expect, test } from 'vitest';
import { decideLease, reasonOfHolder, versionOfHolder } from './lease.ts';

const now = Date.parse('2026-01-01T00:01:00Z');
const lease = (spec: Record<string, unknown>) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a', namespace: 'medik8s-leases' },
  spec,
});
const held = { holderIdentity: 'other', leaseDurationSeconds: 30 };

test.each([
  ['no lease', undefined, 'create'],
  ['ours', lease({ ...held, holderIdentity: 'me' }), 'renew'],
  ['nobody’s', lease({ holderIdentity: '' }), 'takeOver'],
  ["another's, renewed in time", lease({ ...held, renewTime: '2026-01-01T00:00:31.000000Z' }), 'taken'],
  ["another's, expired", lease({ ...held, renewTime: '2026-01-01T00:00:30.000000Z' }), 'takeOver'],
  [
    "another's, never renewed since it was taken",
    lease({ ...held, acquireTime: '2026-01-01T00:00:59.000000Z' }),
    'taken',
  ],
  ["another's, without a time", lease(held), 'taken'],
])('%s', (_name, given, kind) => {
  expect(decideLease(given, 'me', now).kind).toBe(kind);
});

test.each<[Record<string, unknown>, string | undefined, string | undefined]>([
  [{ holderIdentity: 'me' }, 'me: 0.2.0', '0.2.0'],
  [{ holderIdentity: 'other' }, 'me: 0.2.0', undefined],
  [{ holderIdentity: 'me' }, undefined, undefined],
  [{ holderIdentity: '' }, ': 0.2.0', undefined],
])('the holder of %j with the note %j has version %j', (spec, note, version) => {
  const annotations = note === undefined ? {} : { 'shale.dev/version': note };
  const given = lease(spec);
  expect(versionOfHolder({ ...given, metadata: { ...given.metadata, annotations } })).toBe(version);
});

test.each([
  ['other: it is not healthy', 'it is not healthy'],
  ['new disk', 'new disk'],
  [undefined, undefined],
])('a lease with the note %j is held for %j', (note, reason) => {
  const annotations = note === undefined ? {} : { 'shale.dev/reason': note };
  const given = lease(held);
  expect(reasonOfHolder({ ...given, metadata: { ...given.metadata, annotations } })).toBe(reason);
});
