import { describe, expect, it } from 'vitest';
import { type Lease, Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, condition } from '../../test/fixtures/objects.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions } from '../options.ts';
import { noHooks } from '../pools/hooks.ts';
import type { NodeStep } from '../pools/node-step.ts';

const signal = new AbortController().signal;

it('writes what a MachineConfigNode says to its Node, once', async () => {
  const cluster = new MemoryCluster();
  cluster.put(Nodes, aNode('a'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
  const operator = steppedOperator(cluster, Date.now);
  operator.catchUp();
  const before = cluster.writes;
  await operator.annotations.reconcile('a', signal);
  expect(cluster.get(Nodes, 'a')?.metadata.annotations).toMatchObject({
    [annotations.desiredConfig]: 'rendered-worker-1',
    [annotations.state]: 'Working',
  });
  // The watch has not shown the write yet.
  await operator.annotations.reconcile('a', signal);
  expect(cluster.writes).toBe(before + 1);
});

it('leaves alone what has no Node or no MachineConfigNode, and a Node that was deleted meanwhile', async () => {
  const cluster = new MemoryCluster();
  cluster.put(Nodes, aNode('a'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('b'));
  cluster.put(Nodes, aNode('c'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('c'));
  const operator = steppedOperator(cluster, Date.now);
  operator.catchUp();
  cluster.remove(Nodes, 'c');
  for (const name of ['a', 'b', 'c'])
    expect(await operator.annotations.reconcile(name, signal)).toEqual({ kind: 'done' });
  expect(cluster.get(Nodes, 'a')?.metadata.annotations).toBeUndefined();
});

it('does not swallow a conflict', async () => {
  const cluster = new MemoryCluster();
  cluster.put(Nodes, aNode('a'));
  cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
  const operator = steppedOperator(cluster, Date.now);
  operator.catchUp();
  cluster.trouble = () => 'conflict';
  await expect(operator.annotations.reconcile('a', signal)).rejects.toMatchObject({ status: 409 });
});

describe('a node that is cordoned for its update and runs its target', () => {
  const CONFIG = 'rendered-worker-1';
  const HOLDER = defaultRolloutOptions.leases.holder;
  const WORKING = { [annotations.currentConfig]: 'rendered-worker-0', [annotations.state]: 'Working' };
  const DONE = { [annotations.currentConfig]: CONFIG, [annotations.state]: 'Done' };

  function updatedNode(cluster: MemoryCluster, holder: string | undefined): void {
    cluster.put(Nodes, {
      ...aNode('a', {
        metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true', ...WORKING } },
      }),
      spec: { unschedulable: true },
    });
    const grant = { level: 'Disrupt', config: CONFIG, leaseHolder: HOLDER } as const;
    const status = {
      configVersion: { current: CONFIG, desired: CONFIG },
      mode: 'Standard' as const,
      conditions: [condition('Updated'), condition('Cordoned')],
    };
    cluster.put(MachineConfigNodes, aMachineConfigNode('a', { grant }, status));
    if (holder !== undefined) cluster.put(Leases, leaseOf(holder));
  }

  function leaseOf(holderIdentity: string): Lease {
    const time = new Date().toISOString();
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: leaseNameOf('a'), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'lease' },
      spec: { holderIdentity, leaseDurationSeconds: 300, acquireTime: time, renewTime: time },
    };
  }

  /** An operator that remembers nothing, as after a kill. */
  function started(cluster: MemoryCluster) {
    const operator = steppedOperator(cluster, Date.now);
    operator.catchUp();
    const carryOut = async (step: NodeStep) => {
      const node = operator.caches.nodes.get('a');
      const machineConfigNode = operator.caches.machineConfigNodes.get('a');
      if (node === undefined || machineConfigNode === undefined) throw new Error('both were put');
      const piece = { node, machineConfigNode, onlyNode: false, hooks: noHooks };
      await operator.work.carryOut(step, piece, signal);
      operator.catchUp();
    };
    return { ...operator, carryOut };
  }

  const annotated = (cluster: MemoryCluster) => cluster.get(Nodes, 'a')?.metadata.annotations;

  it('is annotated by the write that uncordons it, and by no other', async () => {
    const cluster = new MemoryCluster();
    updatedNode(cluster, HOLDER);
    const operator = started(cluster);
    const before = cluster.writes;
    await operator.annotations.reconcile('a', signal);
    expect(cluster.writes).toBe(before);
    await operator.carryOut({ kind: 'finish' });
    expect(annotated(cluster)).toMatchObject(DONE);
    expect(cluster.get(Nodes, 'a')?.spec?.unschedulable).toBeUndefined();
    const after = cluster.writes;
    await operator.annotations.reconcile('a', signal);
    expect(cluster.writes).toBe(after);
  });

  it.each([0, 1, 2, 3])(
    'is annotated after the operator is killed before write %i of its end',
    async (writes) => {
      const cluster = new MemoryCluster();
      updatedNode(cluster, HOLDER);
      let left = writes;
      cluster.trouble = () => {
        left -= 1;
        return left < 0 ? 'killed' : 'none';
      };
      await expect(started(cluster).carryOut({ kind: 'finish' })).rejects.toThrow();
      cluster.trouble = () => 'none';
      const next = started(cluster);
      await next.annotations.reconcile('a', signal);
      await next.carryOut({ kind: 'finish' });
      await next.annotations.reconcile('a', signal);
      expect(annotated(cluster)).toMatchObject(DONE);
    },
  );

  it('is annotated at once where it stays cordoned, because it is let go', async () => {
    const cluster = new MemoryCluster();
    updatedNode(cluster, HOLDER);
    const operator = started(cluster);
    await operator.carryOut({ kind: 'let-go', why: 'it is not Ready' });
    await operator.annotations.reconcile('a', signal);
    expect(annotated(cluster)).toMatchObject({ ...DONE, [annotations.cordonedByShale]: 'true' });
  });

  it.each([
    ['nobody', undefined],
    ['another', 'ops'],
  ])('is annotated at once where %s holds its lease', async (_who, holder) => {
    const cluster = new MemoryCluster();
    updatedNode(cluster, holder);
    await started(cluster).annotations.reconcile('a', signal);
    expect(annotated(cluster)).toMatchObject(DONE);
  });
});
