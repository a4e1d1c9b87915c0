import { expect, it } from 'vitest';
import type { Pod } from '../../api/kubernetes.ts';
import { podVerdict } from './drain-step.ts';

const pod = (more: { metadata?: Partial<Pod['metadata']>; phase?: string } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', ...more.metadata },
  spec: { containers: [], volumes: [{ name: 'scratch', emptyDir: {} }] },
  status: { phase: more.phase ?? 'Running' },
});
const EVICT_ALL = { evictUnmanagedPods: true, evictEmptyDirPods: true };
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
  const verdict = podVerdict(subject, EVICT_ALL);
  expect(verdict.kind === 'leave' ? verdict.why : verdict.kind).toBe(expected);
});

it('a pod of nobody, or with data of its own, is somebody’s to decide where the settings say so', () => {
  const keepUnmanaged = { ...EVICT_ALL, evictUnmanagedPods: false };
  expect(podVerdict(pod(), keepUnmanaged)).toMatchObject({
    kind: 'refuse',
    why: expect.stringMatching('no controller'),
  });
  expect(podVerdict(pod({ metadata: ownedBy('Job') }), keepUnmanaged)).toEqual({ kind: 'evict' });
  const keepData = { ...EVICT_ALL, evictEmptyDirPods: false };
  expect(podVerdict(pod(), keepData)).toMatchObject({
    kind: 'refuse',
    why: expect.stringMatching('emptyDir'),
  });
  expect(podVerdict({ ...pod(), spec: { containers: [] } }, keepData)).toEqual({ kind: 'evict' });
});

it('a pod that should have ended on a node that nobody hears from is not waited for', () => {
  const ending = pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const end = Date.parse('2026-01-01T00:00:00Z');
  expect(podVerdict(ending, EVICT_ALL, { now: end - 1 })).toEqual({ kind: 'terminating' });
  expect(podVerdict(ending, EVICT_ALL, { now: end })).toEqual({ kind: 'leave', why: 'lost' });
  expect(podVerdict(ending, EVICT_ALL)).toEqual({ kind: 'terminating' });
});
