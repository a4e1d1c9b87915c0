import { describe, expect, it, test } from 'vitest';
import type { Node, Pod } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { QuorumPods, readQuorumPods } from '../../api/pool-settings/values.ts';
import { aMachineConfigNode, aNode, condition, REBOOT, RESTART } from '../../test/fixtures/objects.ts';
import { decide, observed } from '../../test/fixtures/pool-decided.ts';
import { quorumAmong } from './quorum.ts';

const ROLE = 'node-role.kubernetes.io/';
interface Making {
  readonly roles?: readonly string[];
  readonly down?: boolean;
  readonly marked?: boolean;
}
function aVoter(
  name: string,
  { roles = ['control-plane'], down = false, marked = false }: Making = {},
): Node {
  const labels = Object.fromEntries(roles.map((role) => [`${ROLE}${role}`, '']));
  const set = marked ? { annotations: { [annotations.cordonedByShale]: 'true' } } : {};
  return aNode(name, {
    metadata: { name, labels, ...set },
    status: { conditions: [condition('Ready', down ? 'False' : 'True')] },
  });
}
function etcdOn(nodeName: string, ready = true): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `etcd-${nodeName}`, namespace: 'kube-system', labels: { component: 'etcd' } },
    spec: { nodeName, containers: [] },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
}
const three = (more: Readonly<Record<string, Making>> = {}) =>
  ['a', 'b', 'c'].map((name) => aVoter(name, more[name]));
const holdOn = (nodes: readonly Node[], pods: readonly Pod[] = [], grants: readonly string[] = []) =>
  quorumAmong({
    nodes,
    pods,
    machineConfigNode: (name): MachineConfigNode => {
      const grant = { level: 'Disrupt', config: 'rendered-worker-1', leaseHolder: 'shale' } as const;
      return aMachineConfigNode(name, grants.includes(name) ? { grant } : {});
    },
  });
const messageOn = (...seen: Parameters<typeof holdOn>) => holdOn(...seen)('a', [])?.message;
const five = (...down: readonly string[]) =>
  ['a', 'b', 'c', 'd', 'e'].map((name) => aVoter(name, { down: down.includes(name) }));

describe('a node that votes may be disrupted', () => {
  it.each<[string, readonly Node[], readonly Pod[]]>([
    ['in a control plane of one, which has nothing to keep', [aVoter('a')], [etcdOn('a')]],
    ['while the other of two is healthy', [aVoter('a'), aVoter('b')], []],
    ['while both others of three are', three(), ['a', 'b', 'c'].map((name) => etcdOn(name))],
    ['while three others of five are', five('b'), []],
    [
      'though its own etcd is down, which its update may mend',
      three(),
      [etcdOn('a', false), etcdOn('b'), etcdOn('c')],
    ],
    ['though itself is down', three({ a: { down: true } }), []],
    [
      'as a worker, whatever the control plane does',
      [aVoter('a', { roles: ['worker'] }), ...three({ b: { down: true } }).slice(1)],
      [],
    ],
    ['where etcd runs elsewhere, without a pod', three(), []],
    [
      'where control plane and etcd are different nodes',
      [
        aVoter('a'),
        aVoter('b'),
        aVoter('c', { roles: ['etcd'] }),
        aVoter('d', { roles: ['etcd'] }),
        aVoter('e', { roles: ['etcd'] }),
      ],
      ['c', 'd', 'e'].map((name) => etcdOn(name)),
    ],
  ])('%s', (_what, nodes, pods) => {
    expect(messageOn(nodes, pods)).toBeUndefined();
  });
});

describe('a node that votes must not be disrupted', () => {
  it.each<[string, readonly Node[], readonly Pod[], readonly string[], string]>([
    [
      'while another of three is down',
      three({ b: { down: true } }),
      [],
      [],
      'no quorum to spare among the 3 control-plane nodes: 2 of the 2 others are needed while a is down, and b is not Ready',
    ],
    [
      'while the other of two is down',
      [aVoter('a'), aVoter('b', { down: true })],
      [],
      [],
      'no quorum to spare among the 2 control-plane nodes: 1 of the other one is needed while a is down, and b is not Ready',
    ],
    [
      'while two others of five are down',
      five('b', 'd'),
      [],
      [],
      'no quorum to spare among the 5 control-plane nodes: 3 of the 4 others are needed while a is down, and b is not Ready, d is not Ready',
    ],
    [
      'while another one is cordoned for its update, of whatever pool',
      three({ c: { marked: true, roles: ['master'] } }),
      [],
      [],
      'no quorum to spare among the 3 control-plane nodes: 2 of the 2 others are needed while a is down, and c is being updated',
    ],
    [
      'while another one reboots, even where a majority is left',
      five(),
      [],
      ['d'],
      'no quorum to spare among the 5 control-plane nodes: 3 of the 4 others are needed while a is down, and d is being updated',
    ],
    [
      'while another member of etcd is not Ready on a node that is',
      three(),
      [etcdOn('a'), etcdOn('b', false), etcdOn('c')],
      [],
      'no quorum to spare among the 3 members of etcd: 2 of the 2 others are needed while a is down, and pod kube-system/etcd-b is not Ready',
    ],
    [
      'while a node that should have a member has none',
      three(),
      [etcdOn('a'), etcdOn('b')],
      [],
      'no quorum to spare among the 3 members of etcd: 2 of the 2 others are needed while a is down, and c has no pod of etcd',
    ],
  ])('%s', (_what, nodes, pods, grants, message) => {
    expect(messageOn(nodes, pods, grants)).toBe(message);
  });

  it('together with another one', () => {
    expect(holdOn(five())('a', ['b'])?.message).toContain('b is being updated');
    expect(holdOn(five())('a', [])).toBeUndefined();
  });
});

describe('a member on a node that rebooted for its update', () => {
  const startedAt = '2026-03-01T00:10:00Z';
  const [before, after] = ['2026-03-01T00:09:59Z', '2026-03-01T00:12:00Z'];
  const reportedAt = (ready: string, running: string): Pod => {
    const member = etcdOn('b');
    const container = { name: 'etcd', image: 'etcd', ready: true, restartCount: 1 };
    return {
      ...member,
      status: {
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: ready }],
        containerStatuses: [{ ...container, state: { running: { startedAt: running } } }],
      },
    };
  };
  const messageWith = (member: Pod, bootIDAfter: string) => {
    const lastUpdate = {
      config: 'rendered-worker-1',
      actions: [],
      causes: [],
      source: '',
      result: 'Succeeded' as const,
      startedAt,
      finishedAt: '2026-03-01T00:13:00Z',
      bootIDBefore: 'first',
      bootIDAfter,
    };
    const holds = quorumAmong({
      nodes: three(),
      pods: [etcdOn('a'), member, etcdOn('c')],
      machineConfigNode: (name) => aMachineConfigNode(name, {}, name === 'b' ? { lastUpdate } : {}),
    });
    return holds('a', [])?.message;
  };

  it('is not counted on while its kubelet has not reported it since', () => {
    expect(messageWith(reportedAt(before, before), 'second')).toBe(
      'no quorum to spare among the 3 members of etcd: 2 of the 2 others are needed while a is down, and pod kube-system/etcd-b has not been reported since b rebooted',
    );
  });

  it.each([
    ['its kubelet saw it become Ready since', reportedAt(after, after), 'second'],
    // A kubelet that was restarted in between goes on with the condition in the API.
    ['its container was started since', reportedAt(before, after), 'second'],
    ['its node did not reboot for the update', reportedAt(before, before), 'first'],
    ['nothing says since when it is Ready', etcdOn('b'), 'second'],
  ])('counts where %s', (_what, member, bootIDAfter) => {
    expect(messageWith(member, bootIDAfter)).toBeUndefined();
  });
});

describe('a pool', () => {
  const plan = { config: 'rendered-worker-2', staged: true, causes: [], source: 'x' };
  const staged = (node: Node, actions = REBOOT, lease: 'us' | 'nobody' = 'nobody') =>
    observed(node.metadata.name, {
      node,
      lease: { by: lease },
      machineConfigNode: aMachineConfigNode(
        node.metadata.name,
        { configVersion: { desired: 'rendered-worker-2' } },
        { plan: { ...plan, actions: [...actions] } },
      ),
    });
  const stepsOf = (nodes: ReturnType<typeof staged>[], cluster: readonly Node[], spec = {}, more = {}) => {
    const decision = decide(nodes, spec, {}, {}, { quorum: holdOn(cluster), ...more });
    return {
      steps: [...decision.steps].map(([name, { kind }]) => `${kind} ${name}`),
      waits: decision.startWaits.map(({ reason }) => reason),
    };
  };

  it('takes no voter while there is no quorum to spare, and says so; a live update does not wait', () => {
    const cluster = three({ b: { down: true } });
    const [node = aNode('a')] = cluster;
    expect(stepsOf([staged(node)], cluster)).toEqual({ steps: [], waits: ['NoQuorumToSpare'] });
    expect(stepsOf([staged(node, RESTART)], cluster)).toEqual({ steps: ['take a'], waits: [] });
  });

  it('starts no rollback then either', () => {
    const cluster = three({ b: { down: true } });
    const [node = aNode('a')] = cluster;
    const target = {
      kind: 'rolled-back',
      target: { config: 'rendered-worker-2' },
      sameContent: new Set<string>(),
      why: 'rolled back',
      ownTarget: { kind: 'standard', target: { config: 'rendered-worker-3' } },
    };
    expect(stepsOf([staged(node)], cluster, {}, { target }).steps).toEqual([]);
  });

  it('puts a voter back that is being drained when the quorum is lost, and goes on otherwise', () => {
    const drained = aVoter('a', { marked: true });
    const at = (other: Making) =>
      stepsOf([staged(drained, REBOOT, 'us')], [drained, ...three({ b: other }).slice(1)]);
    expect(at({}).steps).toEqual(['drain a']);
    expect(at({ down: true }).steps).toEqual(['back-out a']);
  });

  it('takes one of several named pods at a time', () => {
    const nodes = ['a', 'b', 'c'].map((name) => aVoter(name, { roles: ['worker'] }));
    const quorum = quorumAmong({
      nodes,
      pods: ['a', 'b', 'c'].map((name) => etcdOn(name)),
      machineConfigNode: (name) => aMachineConfigNode(name),
    });
    const decision = decide(
      nodes.map((node) => staged(node)),
      { maxUnavailable: 3 },
      {},
      {},
      { quorum },
    );
    expect([...decision.steps.keys()]).toEqual(['a']);
  });
});

test('pods that vote are named by a selector that can be parsed', () => {
  const named = [{ namespace: 'a', selector: 'e in (f, g)' }];
  expect(readQuorumPods(QuorumPods.parse(named))).toEqual(named);
  expect(QuorumPods.safeParse([{ namespace: 'A', selector: 'b=c' }]).success).toBe(false);
  expect(() => readQuorumPods([{ namespace: 'a', selector: 'b in (c' }])).toThrow(/pods 1: /);
});
