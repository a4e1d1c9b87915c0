import { expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode } from '../../test/fixtures/objects.ts';

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
