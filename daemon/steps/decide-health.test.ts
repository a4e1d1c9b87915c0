import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decideHealth,
  type HealthObservation,
  type Kubelet,
  MOST_BOOTS,
  type Verdict,
} from './decide-health.ts';

const limits = { checksMs: 300_000, kubeletMs: 600_000 };
const at = (more: Partial<HealthObservation>): HealthObservation => ({
  boots: 1,
  checks: { kind: 'passed' },
  kubelet: { kind: 'ready' },
  elapsedMs: 0,
  ...more,
});
const failing = { kind: 'failed', name: '10-net', why: 'failed (exit code 1): no route' } as const;
const notReady: Kubelet = { kind: 'notReady', why: 'container runtime is down' };
const away: Kubelet = { kind: 'unknown', why: 'connection refused' };

test.each<[string, Partial<HealthObservation>, Verdict['kind'], string?]>([
  ['all is well', {}, 'healthy'],
  ['nobody watches the kubelet', { kubelet: { kind: 'unwatched' } }, 'healthy'],
  ['a check fails while services may still start', { checks: failing, elapsedMs: 299_999 }, 'wait', '10-net'],
  [
    'a check fails for too long',
    { checks: failing, elapsedMs: 300_000 },
    'unhealthy',
    '10-net failed (exit code 1): no route',
  ],
  ['checks pass late', { elapsedMs: 900_000 }, 'healthy'],
  ['the kubelet is not there yet', { kubelet: notReady, elapsedMs: 599_999 }, 'wait', 'runtime is down'],
  [
    'the kubelet does not come',
    { kubelet: notReady, elapsedMs: 600_000 },
    'unhealthy',
    'within 600 s: container runtime is down',
  ],
  [
    'the API server is away for a day',
    { kubelet: away, elapsedMs: 86_400_000 },
    'wait',
    'connection refused',
  ],
  [
    'a check fails while the API server is away',
    { checks: failing, kubelet: away, elapsedMs: 300_000 },
    'unhealthy',
    '10-net',
  ],
  ['it went down twice', { boots: MOST_BOOTS }, 'healthy'],
  ['it goes down again and again', { boots: MOST_BOOTS + 1 }, 'unhealthy', 'went down 3 times'],
])('%s', (_name, more, kind, why) => {
  const verdict = decideHealth(at(more), limits);
  expect(verdict.kind).toBe(kind);
  if (why !== undefined) expect(verdict).toMatchObject({ why: expect.stringContaining(why) });
});

test('whatever is wrong, the node has its time', () => {
  const seen = fc.record({
    boots: fc.integer({ min: 1, max: MOST_BOOTS }),
    checks: fc.constantFrom<HealthObservation['checks']>({ kind: 'passed' }, failing),
    kubelet: fc.constantFrom<Kubelet>({ kind: 'ready' }, { kind: 'unwatched' }, notReady, away),
    elapsedMs: fc.integer({ min: 0, max: 299_999 }),
  });
  fc.assert(fc.property(seen, (observation) => decideHealth(observation, limits).kind !== 'unhealthy'));
});
