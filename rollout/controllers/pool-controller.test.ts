import { expect, it } from 'vitest';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aNode, aPool, aRenderedConfig, condition } from '../../test/fixtures/objects.ts';

const CONFIG = 'rendered-worker-1';
const WORKER = 'node-role.kubernetes.io/worker';
const signal = new AbortController().signal;

/** A pool whose nodes all run what it wants, and the controller that has seen so. */
async function settledPool(nodes: number) {
  const cluster = new MemoryCluster();
  cluster.put(MachineConfigs, aRenderedConfig(CONFIG));
  cluster.put(
    MachineConfigPools,
    aPool('worker', { configuration: { name: CONFIG }, nodeSelector: { matchLabels: { [WORKER]: '' } } }),
  );
  for (let index = 0; index < nodes; index += 1) putUpdatedNode(cluster, `node-${index}`);

  let clock = Date.now();
  const { leases, pools, catchUp } = steppedOperator(cluster, () => clock);
  const looked = new Set<string>();
  const read = leases.holding.bind(leases);
  leases.holding = (name) => {
    looked.add(name);
    return read(name);
  };
  /** @returns the nodes that were looked at. */
  const look = async () => {
    catchUp();
    looked.clear();
    clock += 1_000;
    await pools.reconcile('worker', signal);
    return [...looked];
  };
  await look();
  await look();
  return { cluster, look, status: () => cluster.get(MachineConfigPools, 'worker')?.status };
}

function putUpdatedNode(cluster: MemoryCluster, name: string): void {
  cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels: { [WORKER]: '' } } }));
  cluster.put(MachineConfigNodes, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name, labels: { 'shale.dev/pool': 'worker' } },
    spec: { node: { name }, pool: { name: 'worker' }, configVersion: { desired: CONFIG } },
    status: {
      mode: 'Standard',
      configVersion: { current: CONFIG, desired: CONFIG },
      conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
    },
  });
}

function withReady(node: Node | undefined, status: 'True' | 'False'): Node {
  if (node === undefined) throw new Error('the node is gone');
  return { ...node, status: { conditions: [condition('Ready', status)] } };
}

it.each([5, 500])(
  "one node's event in a settled pool of %i nodes is a look at this node alone",
  async (size) => {
    const { cluster, look, status } = await settledPool(size);
    expect(await look()).toEqual([]);
    expect(status()).toMatchObject({
      machineCount: size,
      updatedMachineCount: size,
      readyMachineCount: size,
    });
    cluster.put(Nodes, withReady(cluster.get(Nodes, 'node-1'), 'False'));
    expect(await look()).toEqual(['node-1']);
    expect(status()).toMatchObject({ machineCount: size, readyMachineCount: size - 1 });
    cluster.put(Nodes, withReady(cluster.get(Nodes, 'node-1'), 'True'));
    expect(await look()).toEqual(['node-1']);
    expect(status()).toMatchObject({ machineCount: size, readyMachineCount: size });
    expect(await look()).toEqual([]);
  },
);

it('a node that comes and one that goes are counted', async () => {
  const { cluster, look, status } = await settledPool(3);
  putUpdatedNode(cluster, 'node-3');
  expect(await look()).toEqual(['node-3']);
  expect(status()?.machineCount).toBe(4);
});

it('another target is for every node', async () => {
  const { cluster, look } = await settledPool(3);
  const pool = cluster.get(MachineConfigPools, 'worker');
  if (pool === undefined) throw new Error('the pool is gone');
  cluster.put(MachineConfigs, aRenderedConfig('rendered-worker-2'));
  cluster.put(MachineConfigPools, {
    ...pool,
    spec: { ...pool.spec, configuration: { name: 'rendered-worker-2' } },
  });
  expect((await look()).toSorted()).toEqual(['node-0', 'node-1', 'node-2']);
  const desired = cluster.list(MachineConfigNodes).map(({ spec }) => spec.configVersion.desired);
  expect(new Set(desired)).toEqual(new Set(['rendered-worker-2']));
});
