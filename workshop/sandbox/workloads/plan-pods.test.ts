import { describe, expect, test } from 'vitest';
import type { DaemonSet, Deployment, Node, Pod, Toleration } from '../../../api/kubernetes.ts';
import { planPods } from './plan-pods.ts';

const node = (
  name: string,
  more: { ready?: boolean; cordoned?: boolean; labels?: Record<string, string> } = {},
): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: more.labels ?? {} },
  spec: { unschedulable: more.cordoned ?? false },
  status: {
    conditions: [
      {
        type: 'Ready',
        status: more.ready === false ? 'False' : 'True',
        reason: 'Test',
        message: '',
        lastTransitionTime: '',
      },
    ],
  },
});
const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'web' }] },
};
const web = (replicas: number): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default', uid: 'u1' },
  spec: { replicas, selector: { matchLabels: { app: 'web' } }, template },
});
const daemon: DaemonSet = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'daemon', namespace: 'system', uid: 'u2' },
  spec: { selector: {}, template },
};
const pod = (name: string, uid: string, nodeName: string, leaving = false): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'default',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'X', name: 'x', uid }],
    ...(leaving ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
  },
  spec: { nodeName, containers: [] },
});
const nothing = { deployments: [], daemonSets: [], pods: [], nodes: [], former: new Set<string>() };

describe('planPods', () => {
  test.each<[what: string, kind: string, owner: string, name: string, isDeleted: boolean]>([
    ['a Deployment that is gone', 'Deployment', 'gone', 'web-0', true],
    ['a Deployment that is there', 'Deployment', 'u1', 'web-0', false],
    ['a DaemonSet that is gone', 'DaemonSet', 'gone', 'x-a', true],
    ['a DaemonSet that another controller runs', 'DaemonSet', 'gone', 'x-7rt2k', false],
    ['a ReplicaSet', 'ReplicaSet', 'gone', 'x-7rt2k', false],
  ])('collects a pod of %s', (_, kind, uid, name, isDeleted) => {
    const made = pod(name, uid, 'a');
    const ownerReferences = [{ apiVersion: 'apps/v1', kind, name: 'x', uid }];
    const pods = [{ ...made, metadata: { ...made.metadata, ownerReferences } }];
    const plan = planPods({ ...nothing, deployments: [web(1)], nodes: [node('a')], pods });
    expect(plan.delete).toEqual(isDeleted ? pods : []);
  });

  test('spreads a Deployment over the nodes', () => {
    const { create } = planPods({ ...nothing, deployments: [web(3)], nodes: [node('a'), node('b')] });
    expect(create.map((made) => made.spec.nodeName)).toEqual(['a', 'b', 'a']);
  });

  test('passes by tainted nodes, unless the taint is tolerated', () => {
    const tainted: Node = {
      ...node('a'),
      spec: { taints: [{ key: 'control-plane', effect: 'NoSchedule' }] },
    };
    const placed = (tolerations: readonly Toleration[]) => {
      const deployment = web(1);
      const spec = { ...template.spec, tolerations };
      const tolerant = { ...deployment, spec: { ...deployment.spec, template: { ...template, spec } } };
      return planPods({ ...nothing, deployments: [tolerant], nodes: [tainted, node('b')] }).create[0]?.spec
        .nodeName;
    };

    expect(placed([])).toBe('b');
    expect(placed([{ key: 'other', operator: 'Exists' }])).toBe('b');
    expect(placed([{ key: 'control-plane', operator: 'Exists', effect: 'NoSchedule' }])).toBe('a');
    expect(placed([{ operator: 'Exists' }])).toBe('a');
  });

  test('passes by cordoned and unready nodes', () => {
    const nodes = [node('a', { cordoned: true }), node('b', { ready: false }), node('c')];
    const { create } = planPods({ ...nothing, deployments: [web(1)], nodes });
    expect(create.map((made) => made.spec.nodeName)).toEqual(['c']);
  });

  test('creates nothing while no node can take it', () => {
    expect(
      planPods({ ...nothing, deployments: [web(1)], nodes: [node('a', { cordoned: true })] }).create,
    ).toEqual([]);
  });

  test('a pod on its way out is replaced and not deleted again', () => {
    const pods = [pod('web-1', 'u1', 'a', true)];
    const plan = planPods({
      ...nothing,
      deployments: [web(1)],
      pods,
      nodes: [node('a', { cordoned: true }), node('b')],
    });
    expect(plan.create.map((made) => made.spec.nodeName)).toEqual(['b']);
    expect(plan.delete).toEqual([]);
  });

  test('a new pod takes no name that is in use', () => {
    const pods = [pod('web-0', 'u1', 'a', true), pod('web-1', 'u1', 'a')];
    const { create } = planPods({ ...nothing, deployments: [web(3)], pods, nodes: [node('a')] });
    expect(create.map((made) => made.metadata.name)).toEqual(['web-2', 'web-3']);
  });

  test('a new pod takes no name of one that was there', () => {
    const former = new Set(['default/web-0', 'other/web-1']);
    const seen = { ...nothing, deployments: [web(2)], nodes: [node('a')], former };
    expect(planPods(seen).create.map((made) => made.metadata.name)).toEqual(['web-1', 'web-2']);
  });

  test('scaling down deletes', () => {
    const pods = [pod('web-1', 'u1', 'a'), pod('web-2', 'u1', 'a')];
    const plan = planPods({ ...nothing, deployments: [web(1)], pods, nodes: [node('a')] });
    expect(plan.delete.map((gone) => gone.metadata.name)).toEqual(['web-2']);
  });

  test('a DaemonSet has a pod on every node, cordoned or not', () => {
    const plan = planPods({
      ...nothing,
      daemonSets: [daemon],
      nodes: [node('a'), node('b', { cordoned: true })],
    });
    expect(plan.create.map((made) => made.spec.nodeName)).toEqual(['a', 'b']);
  });

  test('a DaemonSet loses the pod of a node that is gone', () => {
    const pods = [pod('d-1', 'u2', 'a'), pod('d-2', 'u2', 'gone')];
    const plan = planPods({ ...nothing, daemonSets: [daemon], pods, nodes: [node('a')] });
    expect(plan.delete.map((gone) => gone.metadata.name)).toEqual(['d-2']);
    expect(plan.create).toEqual([]);
  });
});
