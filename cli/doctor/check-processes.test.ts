import { expect, test } from 'vitest';
import type { DaemonSet, Deployment, Pod } from '../../api/kubernetes.ts';
import { condition, machineConfigNode, node, observed, SINCE } from '../../test/fixtures/observed-cluster.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { judgeProcesses } from './check-processes.ts';

const MINUTE = 60_000;
const SOON = Date.parse(SINCE) + MINUTE;

const daemonSet = (
  desiredNumberScheduled: number,
  numberReady: number,
  nodeSelector: Readonly<Record<string, string>> = {},
) =>
  ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'shale-daemon' },
    spec: { template: { spec: { nodeSelector } } },
    status: { desiredNumberScheduled, numberReady },
  }) as unknown as DaemonSet;
const deployment = (availableReplicas: number) =>
  ({ metadata: { name: 'shale-operator' }, status: { availableReplicas } }) as Deployment;
const pod = (nodeName: string, ready: 'True' | 'False') =>
  ({
    metadata: { name: `shale-daemon-${nodeName}` },
    spec: { nodeName, containers: [] },
    status: { conditions: [{ type: 'Ready', status: ready }] },
  }) as unknown as Pod;
const rebooting = (name: string) =>
  machineConfigNode(name, { conditions: [condition('RebootedNode', 'Unknown')] });

function judge(cluster: Partial<ObservedCluster>, daemons: DaemonSet, pods?: readonly Pod[], now = SOON) {
  const whole = observed({ operator: deployment(1), ...cluster });
  return judgeProcesses(whole, { daemonSet: daemons, pods }, 'shale-system', now);
}

test.each([
  [1, 1, 'ok', '1 node daemon is ready'],
  [3, 3, 'ok', '3 node daemons are ready'],
  [1, 0, 'failure', '1 of 1 node daemon is not ready'],
  [4, 3, 'failure', '1 of 4 node daemons is not ready'],
  [4, 1, 'failure', '3 of 4 node daemons are not ready'],
])('of %i daemons %i are ready, and their pods may not be listed', (desired, ready, level, what) => {
  expect(judge({}, daemonSet(desired, ready))[1]).toMatchObject({ level, what });
});

test.each([
  ['is not installed', undefined, []],
  ['runs', { ...deployment(1) }, []],
  [
    'does not run',
    { ...deployment(0) },
    [
      {
        level: 'warning',
        check: 'processes',
        what: 'the live page is not running, or waits for its certificate; rollouts continue',
        fix: 'kubectl -n shale-system describe deployment/shale-page; kubectl -n shale-system logs deployment/shale-page',
      },
    ],
  ],
])('a live page that %s', (_, page, found) => {
  expect(judge({ page }, daemonSet(1, 1)).slice(2)).toEqual(found);
});

const three = ['a', 'b', 'c'].map((name) => node(name));

test('the daemon of a node that reboots for its update is a warning that names it', () => {
  const cluster = { nodes: three, machineConfigNodes: [rebooting('b')] };
  const pods = [pod('a', 'True'), pod('b', 'False'), pod('c', 'True')];
  expect(judge(cluster, daemonSet(3, 2), pods)[1]).toEqual({
    level: 'warning',
    check: 'processes',
    what: '1 of 3 node daemons is not ready: b (rebooting)',
    fix: 'wait until its update has finished: shale status',
  });
});

test('one that has been rebooting for longer than a node may be down is a failure', () => {
  const cluster = { nodes: three, machineConfigNodes: [rebooting('b')] };
  const pods = [pod('a', 'True'), pod('c', 'True')];
  expect(judge(cluster, daemonSet(3, 2), pods, Date.parse(SINCE) + 11 * MINUTE)[1]).toMatchObject({
    level: 'failure',
    what: '1 of 3 node daemons is not ready: b',
    fix: expect.stringContaining('--field-selector spec.nodeName=b'),
  });
});

test('a node that the DaemonSet does not select is not named', () => {
  const windows = { ...node('a'), metadata: { name: 'a', labels: { 'kubernetes.io/os': 'windows' } } };
  const linux = { ...node('b'), metadata: { name: 'b', labels: { 'kubernetes.io/os': 'linux' } } };
  const daemons = daemonSet(1, 0, { 'kubernetes.io/os': 'linux' });
  expect(judge({ nodes: [windows, linux] }, daemons, [])[1]).toMatchObject({
    what: '1 of 1 node daemon is not ready: b',
  });
});

test('a daemon that is down beside one whose node reboots is a failure, and both are named', () => {
  const cluster = { nodes: three, machineConfigNodes: [rebooting('b')] };
  expect(judge(cluster, daemonSet(3, 1), [pod('a', 'True')])[1]).toMatchObject({
    level: 'failure',
    what: '2 of 3 node daemons are not ready: b (rebooting), c',
    fix: expect.stringContaining('spec.nodeName=c'),
  });
});

test('an operator that may have run on a node that reboots is a warning', () => {
  const ready = daemonSet(1, 1);
  expect(judge({ operator: deployment(0), machineConfigNodes: [rebooting('b')] }, ready)[0]).toMatchObject({
    level: 'warning',
    what: 'the operator is not running; it may have run on a node that is being updated: b (rebooting)',
  });
  expect(judge({ operator: deployment(0) }, ready)[0]).toMatchObject({
    level: 'failure',
    what: 'the operator is not running',
  });
});
