import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import {
  decideHealth,
  type HealthObservation,
  type HealthVerdict,
  type Kubelet,
  type KubeletBoot,
  kubeletOf,
  lookAtKubelet,
  MOST_BOOTS,
} from './health.ts';

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

test.each<[string, Partial<HealthObservation>, HealthVerdict['kind'], string?]>([
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

const node = (bootID: string, heartbeat: string, status: 'True' | 'False' = 'True'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'a' },
  status: {
    nodeInfo: { bootID },
    conditions: [
      {
        type: 'Ready',
        status,
        reason: 'r',
        message: 'm',
        lastHeartbeatTime: heartbeat,
        lastTransitionTime: heartbeat,
      },
    ],
  },
});
const READY_AT = '2026-01-01T00:00:10Z';
const full: KubeletBoot = { bootID: 'k', softBootSince: undefined };
const soft: KubeletBoot = { bootID: 'k+1', softBootSince: Date.parse(READY_AT) + 300 };

test.each<[string, Node | undefined, KubeletBoot, string]>([
  ['no node', undefined, full, 'unwatched'],
  ['of this boot', node('k', '2026-01-01T00:00:00Z'), full, 'ready'],
  ['of the boot before', node('j', '2026-01-01T00:00:20Z'), full, 'notReady'],
  ['of this boot, not Ready', node('k', READY_AT, 'False'), full, 'notReady'],
  ['of this kernel, after its soft reboot', node('k', '2026-01-01T00:00:11Z'), soft, 'ready'],
  ['of this kernel, before its soft reboot', node('k', '2026-01-01T00:00:09Z'), soft, 'notReady'],
  ['of this kernel, in the second of its soft reboot', node('k', READY_AT), soft, 'notReady'],
  ['of another kernel', node('j', '2026-01-01T00:00:11Z'), soft, 'notReady'],
])('a kubelet’s report %s', (_name, reported, boot, expected) => {
  expect(kubeletOf(reported, boot).kind).toBe(expected);
});

test.each<[string, Node, string]>([
  ['of the boot before', node('j', READY_AT), 'it has not reported since the reboot'],
  ['that says why', node('k', READY_AT, 'False'), 'm'],
  [
    'that says no more than a reason',
    {
      ...node('k', READY_AT),
      status: {
        nodeInfo: { bootID: 'k' },
        conditions: [
          { type: 'DiskPressure', status: 'False', reason: 'd', message: 'other' },
          { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: '' },
        ],
      },
    } as unknown as Node,
    'NodeStatusUnknown',
  ],
  ['of nothing', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }, 'it has not reported'],
])('a kubelet’s report %s is why it is not Ready', (_name, reported, why) => {
  expect(kubeletOf(reported, full)).toEqual({ kind: 'notReady', why });
});

test.each<[string, Error, Kubelet]>([
  ['refuses', new ApiError(403, 'GET node', { message: 'forbidden' }), { kind: 'unwatched' }],
  ['fails', new ApiError(500, 'GET node', { message: 'x' }), { kind: 'unknown', why: expect.any(String) }],
  ['is away', new Error('connection refused'), { kind: 'unknown', why: 'connection refused' }],
])('an API server that %s knows so much of a kubelet', async (_what, error, kubelet) => {
  const client = answeringClient({ find: () => Promise.reject(error) });
  const boot = { bootID: 'boot-1', softBootSince: undefined };
  const signal = new AbortController().signal;
  expect(await lookAtKubelet(client, 'worker-1', boot, signal)).toEqual(kubelet);
  const ended = AbortSignal.abort(new Error('ending'));
  await expect(lookAtKubelet(client, 'worker-1', boot, ended)).rejects.toThrow('ending');
});
