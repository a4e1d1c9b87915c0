import { expect, test } from 'vitest';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type PinnedImageSet, PinnedImageSets } from '../../api/pinned-image-set.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, aPool } from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions } from '../options.ts';

const signal = new AbortController().signal;
const aSet: PinnedImageSet = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'PinnedImageSet',
  metadata: { name: 'apps', generation: 2 },
  spec: { pinnedImages: [{ name: `registry.example.com/a@sha256:${'a'.repeat(64)}` }] },
};

function world() {
  const cluster = new MemoryCluster();
  const operator = steppedOperator(cluster, Date.now);
  cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
  cluster.put(Nodes, aNode('a', { status: { nodeInfo: { containerRuntimeVersion: 'cri-o://1.34.1' } } }));
  const pool = cluster.get(MachineConfigNodes, 'a')?.spec.pool.name ?? '';
  const putPool = (names: readonly string[]) => {
    const made = aPool(pool);
    cluster.put(MachineConfigPools, {
      ...made,
      spec: { ...made.spec, pinnedImageSets: names.map((name) => ({ name })) },
    });
  };
  const reconcile = (name = 'a') => {
    operator.catchUp();
    return operator.pinnedImages.reconcile(name, signal);
  };
  const request = () => cluster.get(MachineConfigNodes, 'a')?.spec.pinnedImages;
  return { cluster, operator, putPool, reconcile, request };
}

test('a node is asked once for the sets of its pool, and for none when they are gone', async () => {
  const { cluster, putPool, reconcile, request } = world();
  putPool(['apps', 'gone']);
  cluster.put(PinnedImageSets, aSet);
  await reconcile();
  expect(request()).toEqual({
    sets: [{ name: 'apps', generation: 2 }],
    containerRuntime: 'cri-o',
    problem: 'PinnedImageSet gone of spec.pinnedImageSets does not exist',
  });
  const before = cluster.writes;
  await reconcile();
  expect(cluster.writes).toBe(before);

  putPool(['apps']);
  await reconcile();
  expect(request()).toEqual({ sets: [{ name: 'apps', generation: 2 }], containerRuntime: 'cri-o' });

  putPool([]);
  await reconcile();
  expect(request()).toBeUndefined();
});

test('a node that somebody else holds is asked for nothing new until it is given back', async () => {
  const { cluster, putPool, reconcile, request } = world();
  cluster.put(PinnedImageSets, aSet);
  const waits = { kind: 'requeue', afterMs: 30_000 };
  putPool(['apps']);
  cluster.put(Leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'node-a', namespace: defaultRolloutOptions.leases.namespace },
    spec: { holderIdentity: 'node-maintenance' },
  });
  expect([await reconcile(), request()]).toEqual([waits, undefined]);
  cluster.remove(Leases, 'node-a');
  expect(await reconcile()).toEqual({ kind: 'done' });
  expect(request()?.sets).toEqual([{ name: 'apps', generation: 2 }]);
  // Nor is anything let go.
  cluster.put(
    Nodes,
    aNode('a', { spec: { taints: [{ key: 'medik8s.io/remediation', effect: 'NoExecute' }] } }),
  );
  putPool([]);
  expect(await reconcile()).toEqual(waits);
  expect(request()?.sets).toHaveLength(1);
});

test('a node that is not there, or was deleted a moment ago, is left alone', async () => {
  const { cluster, operator, putPool, reconcile } = world();
  putPool(['apps']);
  expect(await reconcile('gone')).toEqual({ kind: 'done' });
  operator.catchUp();
  cluster.remove(MachineConfigNodes, 'a');
  expect(await operator.pinnedImages.reconcile('a', signal)).toEqual({ kind: 'done' });
});
