import { expect, test } from 'vitest';
import type { Pod } from '../../../api/kubernetes.ts';
import { podState } from './pod-state.ts';

type Status = NonNullable<Pod['status']>;
type ContainerState = NonNullable<NonNullable<Status['containerStatuses']>[number]['state']>;

const podWith = (status?: Status, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'engine-1', ...metadata },
  spec: { containers: [] },
  status,
});
const container = (state: ContainerState, name = 'engine') => ({
  phase: 'Pending',
  containerStatuses: [{ name, image: 'podman:5', ready: false, restartCount: 0, state }],
});

test('a pod runs once it has an address', () => {
  expect(podState(podWith({ phase: 'Running', podIP: '10.0.0.7' }))).toEqual({
    kind: 'running',
    ip: '10.0.0.7',
  });
  expect(podState(podWith({ phase: 'Running' })).kind).toBe('starting');
});

test.each<[string, Status | undefined, string]>([
  ['without a status', undefined, 'its containers are starting'],
  ['whose image is pulled', container({ waiting: { reason: 'ContainerCreating' } }), 'ContainerCreating'],
  [
    'whose image could not be pulled once',
    container({ waiting: { reason: 'ErrImagePull' } }),
    'ErrImagePull',
  ],
  [
    'that no node has room for',
    {
      phase: 'Pending',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/3 nodes are available',
        },
      ],
    },
    'Unschedulable: 0/3 nodes are available',
  ],
])('a pod %s is waited for', (_, status, why) => {
  expect(podState(podWith(status))).toEqual({ kind: 'starting', why });
});

test.each<[string, Status, string, RegExp]>([
  [
    'whose image is not there',
    container({ waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image' } }),
    'EngineUnavailable',
    /^container engine with image podman:5: ImagePullBackOff: Back-off pulling image$/,
  ],
  [
    'whose image has no valid name',
    container({ waiting: { reason: 'InvalidImageName' } }),
    'EngineUnavailable',
    /InvalidImageName$/,
  ],
  [
    'that is killed for memory',
    {
      ...container({ terminated: { exitCode: 137, reason: 'OOMKilled' } }),
      phase: 'Running',
      podIP: '10.0.0.7',
    },
    'EngineUnavailable',
    /engine was OOMKilled/,
  ],
  [
    'one of whose containers ends',
    { ...container({ terminated: { exitCode: 1, message: 'no newuidmap\n' } }, 'front'), phase: 'Running' },
    'EngineUnavailable',
    /^container front ended with exit code 1: no newuidmap$/,
  ],
  [
    'that is evicted for memory',
    { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' },
    'EngineUnavailable',
    /it was evicted: The node was low on resource: memory/,
  ],
  [
    'that is evicted for its disk',
    {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'Usage of EmptyDir volume "storage" exceeds the limit "1Gi".',
    },
    'EngineDiskFull',
    /exceeds the limit/,
  ],
  [
    'whose deadline is over',
    { phase: 'Failed', reason: 'DeadlineExceeded' },
    'EngineUnavailable',
    /activeDeadlineSeconds/,
  ],
  [
    'that failed',
    { phase: 'Failed', reason: 'NodeLost' },
    'EngineUnavailable',
    /its phase is Failed: NodeLost/,
  ],
])('a pod %s can not be used', (_, status, reason, why) => {
  expect(podState(podWith(status))).toEqual({
    kind: 'failed',
    reason,
    why: expect.stringMatching(why) as string,
  });
});

test('a pod that was deleted, or is being deleted, can not be used', () => {
  const leaving = podWith(
    { phase: 'Running', podIP: '10.0.0.7' },
    { deletionTimestamp: '2026-01-01T00:00:00Z' },
  );
  for (const pod of [undefined, leaving])
    expect(podState(pod)).toMatchObject({
      kind: 'failed',
      why: expect.stringContaining('deleted') as string,
    });
});
