import { expect, test } from 'vitest';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { annotations, POWERED_OFF_LEASE_HOLDER } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { endMaintenance } from './end.ts';
import { flagText, maintenanceHolder } from './node-access.ts';

const signal = new AbortController().signal;
const leaseNamespace = 'leases';

/**
 * A node in maintenance by ops, and a client that has the flag replaced after it was read, as a person does meanwhile.
 */
function clusterWithFlag(replacedBy?: string) {
  const cluster = new MemoryCluster();
  const flagged = (flag: string) => {
    const metadata = { name: 'a', annotations: { [annotations.plannedMaintenance]: flag } };
    cluster.put(Nodes, aNode('a', { metadata, spec: { unschedulable: true } }));
  };
  flagged(flagText({ reason: 'disk', by: 'ops', uncordon: true }));
  const metadata = { name: 'node-a', namespace: leaseNamespace };
  const renewTime = new Date().toISOString();
  const spec = { holderIdentity: maintenanceHolder('ops'), leaseDurationSeconds: 7200, renewTime };
  cluster.put(Leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
  const own = cluster.client();
  const client: ApiClient = {
    ...own,
    find: async (kind, name, where) => {
      const found = await own.find(kind, name, where);
      if (kind.kind === 'Lease' && replacedBy !== undefined) flagged(replacedBy);
      return found;
    },
  };
  return {
    cluster,
    client,
    end: () => endMaintenance({ client, node: 'a', leaseNamespace, signal }, { by: 'ops', yes: false }),
  };
}

test('a flag that was set in between stays, with its lease', async () => {
  const later = flagText({ reason: 'another disk', by: 'ops', uncordon: true });
  const { cluster, end } = clusterWithFlag(later);
  await expect(end()).rejects.toThrow(
    'node a: another maintenance was started in the meantime; run this again to end that one',
  );
  const node = cluster.get(Nodes, 'a');
  expect(node?.metadata.annotations).toEqual({ [annotations.plannedMaintenance]: later });
  expect(node?.spec?.unschedulable).toBe(true);
  expect(cluster.get(Leases, 'node-a')?.spec?.leaseDurationSeconds).toBe(7200);
});

test('the flag that was read is removed, and the lease is released', async () => {
  const { cluster, end } = clusterWithFlag();
  await end();
  expect(cluster.get(Nodes, 'a')).toMatchObject({ metadata: { annotations: {} }, spec: {} });
  expect(cluster.get(Leases, 'node-a')).toBeUndefined();
});

test.each<[what: string, ready: 'True' | 'False', yes: boolean, ends: boolean]>([
  ['is off', 'False', false, false],
  ['is off, with --yes', 'False', true, true],
  ['runs again', 'True', false, true],
])('of a machine that was powered off and %s', async (_, ready, yes, ends) => {
  const { cluster, client } = clusterWithFlag();
  const flag = flagText({ reason: 'disk', by: 'ops', uncordon: true, poweredOff: true });
  const own = { [annotations.plannedMaintenance]: flag, [annotations.poweredOff]: '{"by":"ops"}' };
  const conditions = [{ type: 'Ready', status: ready, reason: '', message: '', lastTransitionTime: '' }];
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', annotations: own }, status: { conditions } }));
  const end = endMaintenance({ client, node: 'a', leaseNamespace, signal }, { by: 'ops', yes });
  if (ends) await end;
  else await expect(end).rejects.toThrow('power it on and run this again, or use --yes');
  const left = Object.keys((await client.get(Nodes, 'a', { signal })).metadata.annotations ?? {});
  expect(left).toHaveLength(ends ? 0 : 2);
});

/** A node in no maintenance, whose machine ops has switched off, and whose lease the operator holds for that. */
function clusterWithMark(ready: 'True' | 'False', holderIdentity = POWERED_OFF_LEASE_HOLDER, flag?: string) {
  const cluster = new MemoryCluster();
  const own = {
    [annotations.poweredOff]: '{"by":"ops","reason":"fan"}',
    ...(flag === undefined ? {} : { [annotations.plannedMaintenance]: flag }),
  };
  const conditions = [{ type: 'Ready', status: ready, reason: '', message: '', lastTransitionTime: '' }];
  const metadata = { name: 'a', annotations: own };
  cluster.put(Nodes, aNode('a', { metadata, spec: { unschedulable: true }, status: { conditions } }));
  const spec = { holderIdentity, leaseDurationSeconds: 3600, renewTime: new Date().toISOString() };
  const lease = { name: 'node-a', namespace: leaseNamespace };
  cluster.put(Leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: lease, spec });
  const access = { client: cluster.client(), node: 'a', leaseNamespace, signal };
  return {
    end: (how: { by: string; yes: boolean }) => endMaintenance(access, how),
    annotationsLeft: () => Object.keys(cluster.get(Nodes, 'a')?.metadata.annotations ?? {}),
    isCordoned: () => cluster.get(Nodes, 'a')?.spec?.unschedulable === true,
    holder: () => cluster.get(Leases, 'node-a')?.spec?.holderIdentity,
  };
}

test.each([
  ['runs', 'True', false],
  ['is off, with --yes', 'False', true],
] as const)('the end of a machine that was marked as switched off and %s', async (_, ready, yes) => {
  const { end, annotationsLeft, isCordoned, holder } = clusterWithMark(ready);
  await end({ by: 'ops', yes });
  expect([annotationsLeft(), isCordoned(), holder()]).toEqual([[], true, undefined]);
});

test.each([
  ['is off', 'False', 'ops', 'power it on and run this again, or use --yes'],
  ['another person marked', 'True', 'ann', 'was switched off by ops; use --yes to end it'],
] as const)('without --yes, a mark of a machine that %s stays', async (_, ready, by, why) => {
  const { end, annotationsLeft, holder } = clusterWithMark(ready);
  await expect(end({ by, yes: false })).rejects.toThrow(why);
  expect([annotationsLeft(), holder()]).toEqual([[annotations.poweredOff], POWERED_OFF_LEASE_HOLDER]);
});

test('a mark ends while another holder has the lease, which stays', async () => {
  const { end, annotationsLeft, holder } = clusterWithMark('True', 'node-maintenance');
  await end({ by: 'ops', yes: false });
  expect([annotationsLeft(), holder()]).toEqual([[], 'node-maintenance']);
});

test('a maintenance whose lease ran out ends under the one that is held for the machine', async () => {
  const flag = flagText({ reason: 'disk', by: 'ops', uncordon: true, poweredOff: true });
  const { end, annotationsLeft, isCordoned, holder } = clusterWithMark('True', undefined, flag);
  await end({ by: 'ops', yes: false });
  expect([annotationsLeft(), isCordoned(), holder()]).toEqual([[], false, undefined]);
});
