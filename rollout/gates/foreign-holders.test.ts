import { describe, expect, it } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { aMachineConfigNode, aNode, REBOOT, RESTART } from '../../test/fixtures/objects.ts';
import { decide, observed } from '../../test/fixtures/pool-decided.ts';
import type { ObservedNode } from '../pools/pool-observation.ts';
import { holdersOf } from './gates.ts';

const seen = (node: Node, updateCordoned = false) =>
  holdersOf({ node, lease: { by: 'nobody' }, inMaintenance: false, updateCordoned }, 0).map(
    ({ reason, message }) => `${reason}: ${message}`,
  );
const tainted = (key: string, effect = 'NoSchedule') => aNode('a', { spec: { taints: [{ key, effect }] } });
const cordoned = (more: Parameters<typeof aNode>[1] = {}) =>
  aNode('a', { ...more, spec: { ...more?.spec, unschedulable: true } });
const byShale = { metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } } };

describe('a node has a holder', () => {
  it.each([
    ['ToBeDeletedByClusterAutoscaler', 'NoSchedule', 'the cluster autoscaler'],
    ['karpenter.sh/disrupted', 'NoSchedule', 'Karpenter'],
    ['medik8s.io/drain', 'NoSchedule', 'NodeMaintenance'],
    ['medik8s.io/remediation', 'NoExecute', 'repair'],
    ['node.kubernetes.io/out-of-service', 'NoExecute', 'out of service'],
    ['kubevirt.io/drain', 'NoSchedule', 'virtual machines'],
    ['aws-node-termination-handler/spot-itn', 'NoSchedule', 'AWS'],
    ['cloud.google.com/impending-node-termination', 'NoSchedule', 'Google Cloud'],
  ])('while it carries the taint %s', (key, effect, words) => {
    expect(seen(tainted(key, effect))).toEqual([expect.stringContaining(words)]);
    expect(seen(tainted(key, effect))[0]).toContain(`(taint ${key})`);
    // A cordon may be a setting of its pool's nodes; that somebody takes the node away is none.
    expect(seen(tainted(key, effect), true)).toHaveLength(1);
  });

  it.each([
    // Kubelets and the node lifecycle controller.
    ['node.kubernetes.io/not-ready', 'NoExecute'],
    ['node.kubernetes.io/unreachable', 'NoExecute'],
    ['node.kubernetes.io/disk-pressure', 'NoSchedule'],
    ['node.kubernetes.io/unschedulable', 'NoSchedule'],
    ['node.cloudprovider.kubernetes.io/uninitialized', 'NoSchedule'],
    // A candidate may stay one for ever, and a node of an earlier revision for a whole rollout of Machines.
    ['DeletionCandidateOfClusterAutoscaler', 'PreferNoSchedule'],
    ['node.cluster.x-k8s.io/outdated-revision', 'PreferNoSchedule'],
    ['node.cluster.x-k8s.io/uninitialized', 'NoSchedule'],
    ['karpenter.sh/unregistered', 'NoExecute'],
    ['node.shale.dev/not-configured', 'NoSchedule'],
    ['dedicated', 'NoSchedule'],
  ])('but not with the taint %s', (key, effect) => {
    expect(seen(tainted(key, effect))).toEqual([]);
  });

  it('while it is cordoned by somebody else', () => {
    expect(seen(cordoned())).toEqual(['Cordoned: cordoned, and not by Shale']);
    expect(seen(cordoned(), true)).toEqual([]);
    expect(seen(cordoned(byShale))).toEqual([]);
    expect(seen(aNode('a', byShale))).toEqual([]);
  });
});

describe('a rollout', () => {
  const plan = { config: 'rendered-worker-2', staged: true, causes: [], source: 'x' };
  const desired = { configVersion: { desired: 'rendered-worker-2' } };
  const staged = (name: string, more: Partial<ObservedNode> = {}, actions = REBOOT) =>
    observed(name, {
      machineConfigNode: aMachineConfigNode(name, desired, { plan: { ...plan, actions: [...actions] } }),
      ...more,
    });
  const stepsOf = (nodes: readonly ObservedNode[], settings = {}) =>
    [...decide(nodes, {}, {}, settings).steps].map(([name, { kind }]) => `${kind} ${name}`);

  it.each([
    ['reboots', REBOOT],
    ['restarts a service', RESTART],
  ])('skips a node that somebody drains, where its update %s, and says so', (_what, actions) => {
    const nodes = [staged('a', { node: cordoned() }, actions)];
    const { steps, skipped, unavailable } = decide(nodes);
    expect([...steps]).toEqual([]);
    expect(skipped).toEqual([{ name: 'a', reason: 'Cordoned', message: 'cordoned, and not by Shale' }]);
    expect(unavailable).toEqual([
      { name: 'a', why: 'cordoned, and not by Shale', remedy: 'kubectl uncordon a' },
    ]);
  });

  it('counts the node against maxUnavailable meanwhile', () => {
    const nodes = [staged('a', { node: cordoned() }), staged('b')];
    expect(stepsOf(nodes)).toEqual([]);
    expect([...decide(nodes, { maxUnavailable: 2 }).steps.keys()]).toEqual(['b']);
  });

  it('updates it in a pool that wants cordoned nodes updated, before others', () => {
    const nodes = [staged('a', { node: cordoned() }), staged('b')];
    expect(stepsOf(nodes, { updateCordoned: true })).toEqual(['take a']);
  });

  it('backs out of a node that somebody cordons before Shale does', () => {
    expect(stepsOf([staged('a', { node: cordoned(), lease: { by: 'us' } })])).toEqual(['back-out a']);
  });

  it('lets go of a node that a neighbour takes away while it is drained, and leaves it cordoned', () => {
    const taints = [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }];
    const node = cordoned({ ...byShale, spec: { taints } });
    expect(stepsOf([staged('a', { node, lease: { by: 'us' } })])).toEqual(['let-go a']);
    expect(stepsOf([staged('a', { node })])).toEqual([]);
  });

  it('finishes what has begun, whoever cordons or taints the node then', () => {
    const grant = { level: 'Disrupt', config: 'rendered-worker-2', leaseHolder: 'shale' } as const;
    const taints = [{ key: 'medik8s.io/remediation', effect: 'NoExecute' }];
    const at = (spec: Node['spec']) =>
      observed('a', {
        node: aNode('a', { ...byShale, ...(spec === undefined ? {} : { spec }) }),
        lease: { by: 'us' },
        machineConfigNode: aMachineConfigNode(
          'a',
          { ...desired, grant },
          { plan: { ...plan, actions: [...REBOOT] } },
        ),
      });
    expect(stepsOf([at({ unschedulable: true })])).toEqual(['keep-lease a']);
    expect(stepsOf([at({ unschedulable: true, taints })])).toEqual(['keep-lease a']);
  });

  it('goes on with a node that Shale cordoned before it was killed', () => {
    expect(stepsOf([staged('a', { node: cordoned(byShale), lease: { by: 'us' } })])).toEqual(['drain a']);
    expect(stepsOf([staged('a', { node: cordoned(byShale) })])).toEqual(['take a']);
  });

  it('starts no rollback on a node that somebody drains either', () => {
    const target = {
      kind: 'rolled-back',
      target: { config: 'rendered-worker-2' },
      sameContent: new Set<string>(),
      why: 'rolled back by ann',
      ownTarget: { kind: 'standard', target: { config: 'rendered-worker-3' } },
    } as const;
    expect([...decide([staged('a', { node: cordoned() })], {}, {}, {}, { target }).steps]).toEqual([]);
    expect(decide([staged('a')], {}, {}, {}, { target }).steps.size).toBe(1);
  });
});
