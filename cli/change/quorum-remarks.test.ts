import { describe, expect, test } from 'vitest';
import type { Node, Pod } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { ETCD_PODS } from '../../api/pool-settings/values.ts';
import { ApiError } from '../../cluster/api-client.ts';
import type { NodePrediction, PredictedNode } from '../../predict/node/predict-node.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import { aMachineConfigNode, aNode, condition } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { disruptsVoters, quorumRemarks, readVotingPods } from './quorum-remarks.ts';

const ROLE = 'node-role.kubernetes.io/';
interface Making {
  readonly role?: string;
  readonly down?: boolean;
  readonly marked?: boolean;
}
function aVoter(name: string, { role = 'control-plane', down = false, marked = false }: Making = {}): Node {
  const mark = marked ? { annotations: { [annotations.cordonedByShale]: 'true' } } : {};
  return aNode(name, {
    metadata: { name, labels: { [`${ROLE}${role}`]: '' }, ...mark },
    status: { conditions: [condition('Ready', down ? 'False' : 'True')] },
  });
}
const etcdOn = (nodeName: string, ready = true): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `etcd-${nodeName}`, namespace: 'kube-system' },
  spec: { nodeName, containers: [] },
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});
const REBOOTS: NodePrediction = { kind: 'reboots', why: 'x' };
const predicted = (
  names: readonly string[],
  prediction: NodePrediction = REBOOTS,
): readonly PredictedNode[] => names.map((name) => ({ node: aMachineConfigNode(name), prediction }));
const seen = (...nodes: readonly Node[]) => ({
  nodes,
  machineConfigNodes: nodes.map(({ metadata }) => aMachineConfigNode(metadata.name)),
});
const ALL = ['a', 'b', 'c'];
const three = (more: Readonly<Record<string, Making>> = {}) =>
  seen(...ALL.map((name) => aVoter(name, more[name])));
const pods = (...unhealthy: readonly string[]) => ALL.map((name) => etcdOn(name, !unhealthy.includes(name)));

describe('a change that reboots the nodes of a control plane', () => {
  test('of three healthy ones has nothing to be said of it', () => {
    expect(quorumRemarks(predicted(ALL), three(), pods())).toEqual([]);
  });

  test.each<[string, Parameters<typeof quorumRemarks>[1], readonly Pod[], string]>([
    [
      'a member of etcd is not Ready',
      three(),
      pods('c'),
      'updates of nodes that vote wait: no quorum to spare among the 3 members of etcd: 2 of the 2 others are needed while a is down, and pod kube-system/etcd-c is not Ready',
    ],
    [
      'a node is not Ready',
      three({ b: { down: true } }),
      [],
      'updates of nodes that vote wait: no quorum to spare among the 3 control-plane nodes: 2 of the 2 others are needed while a is down, and b is not Ready',
    ],
    [
      'one is being updated',
      three({ c: { marked: true } }),
      [],
      'updates of nodes that vote wait: no quorum to spare among the 3 control-plane nodes: 2 of the 2 others are needed while a is down, and c is being updated',
    ],
    [
      'it has one node',
      seen(aVoter('a'), aNode('w')),
      [etcdOn('a')],
      'node a is the only one of the control plane: nothing answers for the cluster while it is down',
    ],
  ])('is told that %s', (_, cluster, voting, expected) => {
    expect(quorumRemarks(predicted(ALL), cluster, voting)).toEqual([expected]);
  });

  test('names the first node that waits, once', () => {
    expect(quorumRemarks(predicted(ALL), three(), pods('b', 'c'))).toHaveLength(1);
  });
});

test.each<[string, readonly PredictedNode[]]>([
  ['reboots workers alone', predicted(['w'])],
  ['disrupts no node', predicted(ALL, { kind: 'arrived' })],
])('a change that %s has nothing to be said of it, however the control plane is', (_, nodes) => {
  const cluster = three({ a: { down: true } });
  expect(quorumRemarks(nodes, { ...cluster, nodes: [...cluster.nodes, aNode('w')] }, pods('b'))).toEqual([]);
});

test.each<[string, readonly PredictedNode[], typeof ETCD_PODS, boolean]>([
  ['reboots a node of the control plane', predicted(['a']), ETCD_PODS, true],
  ['reboots a node that only has the role of etcd', predicted(['e']), ETCD_PODS, true],
  ['reboots a worker', predicted(['w']), ETCD_PODS, false],
  ['reboots a node that is gone', predicted(['gone']), ETCD_PODS, false],
  ['disrupts no node', predicted(['a'], { kind: 'arrived' }), ETCD_PODS, false],
  [
    'reboots a worker, which may vote where the pool names pods',
    predicted(['w']),
    [{ namespace: 'db', selector: 'app=db' }],
    true,
  ],
])('whether voters are disrupted by a change that %s', (_, nodes, selected, expected) => {
  const cluster = { nodes: [aVoter('a'), aVoter('e', { role: 'etcd' }), aNode('w')] };
  expect(disruptsVoters(nodes, cluster, selected)).toBe(expected);
});

test('pods that vote are those of every selector, and none where the user may not list them', async () => {
  const asked: unknown[] = [];
  const listing = (answer: () => readonly Pod[]) =>
    answeringClient({
      list: async (_, { namespace, labelSelector } = {}) => {
        asked.push([namespace, labelSelector]);
        return { items: answer() };
      },
    });
  const signal = deadline(1_000);
  expect(
    await readVotingPods(
      listing(() => [etcdOn('a')]),
      ETCD_PODS,
      signal,
    ),
  ).toHaveLength(2);
  expect(asked).toEqual([
    ['kube-system', 'component=etcd'],
    ['openshift-etcd', 'app=etcd'],
  ]);
  const forbidden = () => {
    throw new ApiError(403, 'pods', { reason: 'Forbidden' });
  };
  expect(await readVotingPods(listing(forbidden), ETCD_PODS, signal)).toEqual([]);
});
