import { expect, it } from 'vitest';
import type { Pod, Toleration } from '../../api/kubernetes.ts';
import { podVerdict } from './drain-step.ts';

const pod = (
  more: {
    metadata?: Partial<Pod['metadata']>;
    phase?: string;
    tolerations?: readonly Toleration[] | undefined;
  } = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', ...more.metadata },
  spec: {
    containers: [],
    volumes: [{ name: 'scratch', emptyDir: {} }],
    tolerations: more.tolerations,
  },
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
  expect(podVerdict(ending, EVICT_ALL, { lostAt: end - 1 })).toEqual({ kind: 'terminating' });
  expect(podVerdict(ending, EVICT_ALL, { lostAt: end })).toEqual({ kind: 'leave', why: 'lost' });
  expect(podVerdict(ending, EVICT_ALL)).toEqual({ kind: 'terminating' });
});

const KEY = 'node.kubernetes.io/unschedulable';
const CORDONED_AT = Date.parse('2026-01-01T00:00:00Z');

it.each<[string, readonly Toleration[] | undefined, boolean]>([
  ['tolerates everything', [{ operator: 'Exists' }], true],
  ['tolerates the cordon', [{ key: KEY, operator: 'Exists', effect: 'NoSchedule' }], true],
  ['tolerates the cordon by its value', [{ key: KEY, operator: 'Equal', value: '' }], true],
  ['tolerates the cordon, without an operator', [{ key: 'x' }, { key: KEY }], true],
  ['tolerates another value', [{ key: KEY, value: 'yes' }], false],
  ['tolerates to be there, not to come', [{ key: KEY, operator: 'Exists', effect: 'NoExecute' }], false],
  ['tolerates something else', [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }], false],
  ['tolerates nothing', undefined, false],
])('a pod that came after the cordon and %s', (_what, tolerations, stays) => {
  const made = (creationTimestamp: string) => pod({ metadata: { creationTimestamp }, tolerations });
  const late = made('2026-01-01T00:01:00Z');
  const verdict = stays ? { kind: 'leave', why: 'comes back' } : { kind: 'evict' };
  expect(podVerdict(late, EVICT_ALL, { cordonedAt: CORDONED_AT })).toEqual(verdict);
  const ending = { ...late, metadata: { ...late.metadata, deletionTimestamp: '2026-01-01T00:02:00Z' } };
  expect(podVerdict(ending, EVICT_ALL, { cordonedAt: CORDONED_AT })).toEqual(
    stays ? verdict : { kind: 'terminating' },
  );
  // What was there before goes like any other, also by a clock that is some seconds ahead.
  expect(podVerdict(made('2025-12-31T23:59:00Z'), EVICT_ALL, { cordonedAt: CORDONED_AT })).toEqual({
    kind: 'evict',
  });
  expect(podVerdict(made('2026-01-01T00:00:09Z'), EVICT_ALL, { cordonedAt: CORDONED_AT })).toEqual({
    kind: 'evict',
  });
  expect(podVerdict(late, EVICT_ALL)).toEqual({ kind: 'evict' });
});
