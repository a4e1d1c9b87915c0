import { expect, it } from 'vitest';
import { Leases, Nodes } from '../api/kubernetes.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { Membership } from '../rollout/pools/membership.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aMachineConfigNode, aNode, aPool } from '../test/fixtures/objects.ts';
import { controllerTable, featureEntry } from './controllers.ts';

/** A pool with a node that needs no attention, and what others have left. */
function cluster() {
  const objects = new MemoryCluster();
  const membership = new Membership();
  const pool = aPool('worker', { nodeSelector: { matchLabels: { pool: 'worker' } } });
  const member = aNode('member', { metadata: { name: 'member', labels: { pool: 'worker' } } });
  membership.setPool(objects.put(MachineConfigPools, pool));
  for (const node of [member, aNode('of-no-pool')]) membership.setNode(objects.put(Nodes, node));
  for (const name of ['member', 'deleted']) objects.put(MachineConfigNodes, aMachineConfigNode(name));
  for (const name of ['node-released', 'another'])
    objects.put(Leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name } });
  const cacheOf = <T extends KubernetesObject>(kind: Kind<T>) => ({
    list: () => objects.list(kind),
    get: (name: string) => objects.get(kind, name),
  });
  const caches = {
    pools: cacheOf(MachineConfigPools),
    nodes: cacheOf(Nodes),
    machineConfigNodes: cacheOf(MachineConfigNodes),
    leases: cacheOf(Leases),
    machineConfigurations: cacheOf(MachineConfigurations),
  };
  const table = controllerTable({ caches, membership, namespace: 'shale-system' });
  return { membership, table, feature: featureEntry({ doing: 'anything' }, { caches }) };
}

it('each controller has a key for everything that it works on', () => {
  const { table } = cluster();
  const all = Object.fromEntries(Object.entries(table).map(([name, { allKeys }]) => [name, [...allKeys()]]));
  expect(all).toEqual({
    pools: ['worker'],
    finish: ['member', 'deleted'],
    rendering: ['worker'],
    services: ['service-configs'],
    policy: ['cluster'],
    certificates: ['member', 'deleted'],
    fleetLock: ['slots'],
    annotations: ['member', 'deleted'],
    maintenanceDrains: ['member', 'deleted'],
    poweredOff: ['member', 'deleted', 'of-no-pool', 'released'],
    departed: ['deleted', 'of-no-pool', 'released'],
  });
});

it('the controller of a feature has a key for each node that has a MachineConfigNode', () => {
  const { feature } = cluster();
  expect(feature.allKeys()).toEqual(['member', 'deleted']);
  expect(feature.objectOf('deleted')).toMatchObject({ kind: 'Node', metadata: { name: 'deleted' } });
});

it('a pass over a pool then looks at every node', () => {
  const { table, membership } = cluster();
  const members = membership.membersOf('worker');
  members.settle('member', undefined, members.now());
  expect(members.isSettled('member')).toBe(true);
  table.pools.allKeys();
  expect(members.isSettled('member')).toBe(false);
});
