/** People who work on nodes, and a rollout that is under way: each waits for the other. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Leases, Nodes, PodDisruptionBudgets } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { seen } from './cluster-under-test.ts';
import { blockDrain } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(120_000) };
const namespace = 'medik8s-leases';
let fleet: FleetUnderTest;
beforeAll(async () => {
  fleet = await startFleetUnderTest(signal);
  // In a cluster of one node nothing is drained.
  await fleet.addPool('elsewhere');
  await fleet.addNode('elsewhere-0', 'elsewhere');
}, patience(60_000));
afterAll(() => fleet.stop());

const holderOf = async (node: string) =>
  (await fleet.client.find(Leases, `node-${node}`, { namespace, signal }))?.spec?.holderIdentity;

test(
  'a maintenance waits for the update of its node, keeps the next from it, and is over when it is ended',
  TEST_MS,
  async () => {
    await fleet.addPool('hosts');
    await fleet.addNode('hosts-0', 'hosts', { script: { waitsBefore: 'acting' } });
    const first = await fleet.change('hosts', 'next');
    await seen(fleet.client, MachineConfigNodes, 'hosts-0', ({ spec }) => spec.grant !== undefined);
    const refused = await fleet.shale('maintenance', 'start', 'hosts-0', '--reason', 'fan', '--yes');
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(refused.stderr).toContain(`node hosts-0: it is being updated to ${first}`);
    const started = fleet.shale('maintenance', 'start', 'hosts-0', '--reason', 'fan', '--yes', '--wait');
    await seen(
      fleet.client,
      Nodes,
      'hosts-0',
      ({ metadata }) => metadata.annotations?.[annotations.plannedMaintenance] !== undefined,
    );
    expect(await holderOf('hosts-0')).toBe('shale-operator');
    fleet.script('hosts-0', {});
    expect(await started).toMatchObject({ exitCode: 0 });
    expect(await holderOf('hosts-0')).toMatch(/^shale-maintenance\//);
    const { status, spec } = await fleet.client.get(MachineConfigNodes, 'hosts-0', { signal });
    expect(status?.configVersion?.current).toBe(first);
    expect(spec.grant).toBeUndefined();

    const second = await fleet.change('hosts', 'second');
    await fleet.poolSays('hosts', 'Updating', /hosts-0: skipped: its lease is held by shale-maintenance\//);
    const { spec: during } = await fleet.client.get(Nodes, 'hosts-0', { signal });
    expect(during?.unschedulable).toBe(true);
    expect(await fleet.shale('maintenance', 'end', 'hosts-0')).toMatchObject({ exitCode: 0 });
    await fleet.runs('hosts-0', second);
    expect((await fleet.client.get(Nodes, 'hosts-0', { signal })).spec?.unschedulable).toBeUndefined();
  },
);

test(
  'a maintenance has the node as soon as the rollout lets go of it: a drain is broken off for it',
  TEST_MS,
  async () => {
    await fleet.addPool('drains');
    await fleet.addNode('drains-0', 'drains');
    await blockDrain(fleet.client, 'drains-0', signal);
    await fleet.change('drains', 'next');
    await fleet.poolSays('drains', 'Updating', /can't be evicted/);
    const started = fleet.shale(
      ...['maintenance', 'start', 'drains-0', '--reason', 'disk', '--yes', '--wait', '--no-drain'],
    );
    expect(await started).toMatchObject({ exitCode: 0 });
    expect(await holderOf('drains-0')).toMatch(/^shale-maintenance\//);
    await fleet.client.delete(PodDisruptionBudgets, 'held-drains-0', { namespace: 'default', signal });
    expect(await fleet.shale('maintenance', 'end', 'drains-0')).toMatchObject({ exitCode: 0 });
  },
);

test(
  'a node that is being updated reports it to users who want to start a maintenance',
  TEST_MS,
  async () => {
    await fleet.addPool('shown');
    await fleet.addNode('shown-0', 'shown', { script: { waitsBefore: 'acting' } });
    const config = await fleet.change('shown', 'next');
    const { status } = await seen(
      fleet.client,
      MachineConfigNodes,
      'shown-0',
      ({ spec }) => spec.grant !== undefined,
    );
    expect(status?.conditions?.find(({ type }) => type === 'Cordoned')).toMatchObject({
      status: 'True',
      message: `Cordoned by shale-operator, which holds the Lease ${namespace}/node-shown-0, to update the node to ${config}`,
    });
    const lease = await fleet.client.get(Leases, 'node-shown-0', { namespace, signal });
    expect(lease.metadata.annotations?.[annotations.leaseReason]).toBe(`shale-operator: update to ${config}`);
    await fleet.eventSays('shown-0', new RegExp(`^Cordon Cordoned the node to update it to ${config}$`));
    fleet.script('shown-0', {});
    await fleet.runs('shown-0', config);
  },
);
