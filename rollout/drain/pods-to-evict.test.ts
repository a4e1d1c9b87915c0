import { expect, it } from 'vitest';
import type { Pod } from '../../api/kubernetes.ts';
import { podVerdict } from './pods-to-evict.ts';

const pod = (more: { metadata?: Partial<Pod['metadata']>; phase?: string } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', ...more.metadata },
  spec: { containers: [], volumes: [{ name: 'scratch', emptyDir: {} }] },
  status: { phase: more.phase ?? 'Running' },
});
const ownedBy = (kind: string, controller = true) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'o', uid: 'u', controller }],
});

it.each<[string, Pod, string]>([
  ['of a ReplicaSet, emptyDir and all', pod({ metadata: ownedBy('ReplicaSet') }), 'evict'],
  ['of nobody', pod(), 'evict'],
  ['of a DaemonSet', pod({ metadata: ownedBy('DaemonSet') }), 'daemonset'],
  ['that a DaemonSet owns but does not control', pod({ metadata: ownedBy('DaemonSet', false) }), 'evict'],
  [
    'of a static manifest',
    pod({ metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }),
    'mirror',
  ],
  ['that is done', pod({ phase: 'Succeeded' }), 'finished'],
  ['that failed', pod({ phase: 'Failed' }), 'finished'],
  ['that is on its way out', pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }), 'terminating'],
])('a pod %s', (_what, subject, expected) => {
  const verdict = podVerdict(subject, true);
  expect(verdict.kind === 'leave' ? verdict.why : verdict.kind).toBe(expected);
});

it('a pod of nobody stays where the setting says so', () => {
  expect(podVerdict(pod(), false)).toEqual({ kind: 'leave', why: 'unmanaged' });
  expect(podVerdict(pod({ metadata: ownedBy('Job') }), false)).toEqual({ kind: 'evict' });
});
