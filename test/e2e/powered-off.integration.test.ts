/** Machines that somebody switches off, and a remediator that would power them on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lease, Leases, Nodes, PodDisruptionBudgets } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { isAlreadyExists, isConflict } from '../../cluster/api-client.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { runOperator } from './builder-under-test.ts';
import { blockDrain } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const signal = deadline(300_000);
const TEST_MS = { timeout: patience(90_000) };
const OURS = 'shale-powered-off';
/** As medik8s' common lease has it: pkg/lease, defaultLeaseNs and generateLeaseName. */
const namespace = 'medik8s-leases';
const leaseName = (node: string) => `node-${node}`;
let fleet: FleetUnderTest;
/** Ends the operator that runs. */
let stopOperator: () => Promise<void>;

beforeAll(async () => {
  fleet = await startFleetUnderTest(signal, {}, { operator: false });
  startOperator();
}, patience(60_000));
afterAll(async () => {
  await stopOperator();
  await fleet.stop();
});

function startOperator(): void {
  const stopping = new AbortController();
  const running = runOperator(fleet.cluster, stopping.signal);
  stopOperator = async () => {
    stopping.abort();
    await running;
  };
}

/**
 * A remediator that asks for a lease before it powers a machine on, by the rules of medik8s' common lease: requestLease,
 * isValidLease and invalidateLease of pkg/lease. It goes by the times in the lease and its own clock alone.
 */
class Remediator {
  readonly #holder = 'node-healthcheck';

  /** @returns who has the lease instead, if it may not remediate. */
  async request(node: string): Promise<string | undefined> {
    const now = new Date();
    const time = now.toISOString().replace('Z', '000Z');
    const spec = {
      holderIdentity: this.#holder,
      leaseDurationSeconds: 600,
      leaseTransitions: 0,
      acquireTime: time,
      renewTime: time,
    };
    const lease = await fleet.client.find(Leases, leaseName(node), { namespace, signal });
    try {
      if (lease === undefined) {
        const metadata = { name: leaseName(node), namespace };
        const created = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
        await fleet.client.create(Leases, created, { namespace, signal });
        return undefined;
      }
      const holder = lease.spec?.holderIdentity ?? 'unknown';
      if (holder !== this.#holder && isValid(lease, now)) return holder;
      await fleet.client.replace(Leases, { ...lease, spec }, { namespace, signal });
      return undefined;
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return this.request(node);
      throw error;
    }
  }

  async giveBack(node: string): Promise<void> {
    await fleet.client.delete(Leases, leaseName(node), { namespace, signal });
  }
}

function isValid({ spec }: Lease, now: Date): boolean {
  const { renewTime, leaseDurationSeconds } = spec ?? {};
  if (renewTime === undefined || leaseDurationSeconds === undefined) return false;
  const [renewed, ms] = [Date.parse(renewTime), leaseDurationSeconds * 1000];
  return renewed + ms >= now.getTime() && renewed <= now.getTime();
}

const remediator = new Remediator();
const holderOf = async (node: string) =>
  (await fleet.client.find(Leases, leaseName(node), { namespace, signal }))?.spec?.holderIdentity;
const isHeldBy = (node: string, holder: string | undefined) =>
  expect.poll(() => holderOf(node), { timeout: patience(30_000), interval: 20 }).toBe(holder);
const mark = (node: string, value: object | null) =>
  fleet.patchNode(node, {
    metadata: { annotations: { [annotations.poweredOff]: value && JSON.stringify(value) } },
  });
const isCordoned = async (node: string) =>
  (await fleet.client.get(Nodes, node, { signal })).spec?.unschedulable === true;
const ago = () => new Date(Date.now() - 2_000).toISOString();

test(
  'a machine that was switched off stays off, also once it came back, until the admin says so',
  TEST_MS,
  async () => {
    await fleet.addPool('off');
    for (const name of ['off-0', 'off-1']) await fleet.addNode(name, 'off');
    await mark('off-1', { by: 'ann', reason: 'fan', since: ago() });
    await fleet.setReady('off-1', false);
    await isHeldBy('off-1', OURS);
    expect(await remediator.request('off-1')).toBe(OURS);
    const { stdout } = await fleet.shale('maintenance', 'list');
    expect(stdout).toMatch(/^off-1 +ann +fan .* switched off on request by ann: fan$/m);
    const config = await fleet.change('off', 'next');
    await fleet.runs('off-0', config);
    await fleet.poolSays(
      'off',
      'Updated',
      /^True .*off-1 is not waited for: switched off on request by ann: fan/,
    );

    await fleet.setReady('off-1', true);
    await fleet.poolSays(
      'off',
      'Updating',
      /off-1: skipped: it runs, but was switched off on request by ann/,
    );
    expect(await remediator.request('off-1')).toBe(OURS);
    expect((await fleet.client.get(MachineConfigNodes, 'off-1', { signal })).spec.grant).toBeUndefined();

    const ended = await fleet.shale('maintenance', 'end', 'off-1', '--yes');
    expect(ended.stdout).toContain('node off-1: no longer marked as switched off');
    await fleet.runs('off-1', config);
    await isHeldBy('off-1', undefined);
    expect(await remediator.request('off-1')).toBeUndefined();
    await remediator.giveBack('off-1');
  },
);

test('whoever has the lease before keeps it, and it is taken when they give it back', TEST_MS, async () => {
  await fleet.addPool('taken');
  await fleet.addNode('taken-0', 'taken');
  await isHeldBy('taken-0', undefined);
  expect(await remediator.request('taken-0')).toBeUndefined();
  await mark('taken-0', { by: 'ann' });
  await fleet.change('taken', 'next');
  await fleet.poolSays('taken', 'Updating', /taken-0: skipped: its lease is held by node-healthcheck/);
  expect(await holderOf('taken-0')).toBe('node-healthcheck');
  await remediator.giveBack('taken-0');
  await isHeldBy('taken-0', OURS);
  await fleet.poolSays('taken', 'Updating', /taken-0: skipped: switched off on request by ann/);
  await mark('taken-0', null);
  await isHeldBy('taken-0', undefined);
});

test(
  'a node that is switched off while it is drained keeps its cordon until that ends',
  TEST_MS,
  async () => {
    await fleet.addPool('midway');
    await fleet.addNode('midway-0', 'midway');
    await blockDrain(fleet.client, 'midway-0', signal);
    const config = await fleet.change('midway', 'next');
    await fleet.poolSays('midway', 'Updating', /midway-0: .*can't be evicted/);
    expect([await isCordoned('midway-0'), await holderOf('midway-0')]).toEqual([true, 'shale-operator']);
    await mark('midway-0', { by: 'ann', reason: 'smoke', since: ago() });
    await fleet.setReady('midway-0', false);
    await isHeldBy('midway-0', OURS);
    expect(await isCordoned('midway-0')).toBe(true);
    await fleet.setReady('midway-0', true);
    await fleet.poolSays('midway', 'Updating', /midway-0: skipped: it runs, but was switched off/);
    expect([await isCordoned('midway-0'), await holderOf('midway-0')]).toEqual([true, OURS]);
    await fleet.client.delete(PodDisruptionBudgets, 'held-midway-0', { namespace: 'default', signal });
    await mark('midway-0', null);
    await fleet.runs('midway-0', config);
    expect(await isCordoned('midway-0')).toBe(false);
  },
);

test(
  'the next operator goes on with the leases, and releases those of marks and nodes that went',
  TEST_MS,
  async () => {
    await fleet.addPool('later');
    for (const name of ['later-0', 'later-1', 'later-2']) {
      await fleet.addNode(name, 'later');
      await mark(name, { by: 'ann' });
      await isHeldBy(name, OURS);
    }
    await stopOperator();
    expect(await remediator.request('later-0')).toBe(OURS);
    await mark('later-1', null);
    await fleet.client.delete(Nodes, 'later-2', { signal });
    startOperator();
    await isHeldBy('later-1', undefined);
    await isHeldBy('later-2', undefined);
    expect(await holderOf('later-0')).toBe(OURS);
  },
);
