/** Nodes of the control plane go one at a time, and only while the others keep etcd's quorum. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import type { OptionChanges } from '../fixtures/rollout-options.ts';
import { seen } from './cluster-under-test.ts';
import { podOn } from './drain-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from './fleet-under-test.ts';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const WORKER = 'node-role.kubernetes.io/worker';
const both = { [CONTROL_PLANE]: '', [WORKER]: '' };
const inSystem = { namespace: 'kube-system' };
const GUARD = 'etcd-guard';

/** A cluster of its own: who votes is a matter of all of its nodes. */
async function startControlPlane(
  options: OptionChanges = {},
): Promise<{ readonly fleet: FleetUnderTest; readonly etcd: Etcd }> {
  const fleet = await startFleetUnderTest(deadline(300_000), {
    drain: { retrySeconds: { min: 0.05, max: 0.5 } },
    ...options,
  });
  onTestFinished(() => fleet.stop());
  return { fleet, etcd: new Etcd(fleet) };
}

/** Members as static pods, each with a pod beside it that a budget lets go only while the others are there. */
class Etcd {
  readonly #fleet: FleetUnderTest;

  constructor(fleet: FleetUnderTest) {
    this.#fleet = fleet;
  }

  async start(...nodes: readonly string[]): Promise<void> {
    for (const node of nodes) {
      const mirror = { labels: { component: 'etcd' }, annotations: { 'kubernetes.io/config.mirror': 'x' } };
      await this.#fleet.client.create(Pods, podOn(node, `etcd-${node}`, mirror), inSystem);
      await this.setReady(node, true);
      await this.guard(node);
    }
    const spec = { minAvailable: Math.max(1, nodes.length - 1), selector: { matchLabels: { app: GUARD } } };
    const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: GUARD }, spec };
    await this.#fleet.client.create(PodDisruptionBudgets, budget, inSystem);
  }

  setReady(node: string, ready: boolean): Promise<void> {
    return this.#report(`etcd-${node}`, ready);
  }

  /** As the operator of etcd does on a node that is schedulable. */
  async guard(node: string): Promise<void> {
    const name = `${GUARD}-${node}`;
    await this.#fleet.client.create(Pods, podOn(node, name, { labels: { app: GUARD } }), inSystem);
    await this.#report(name, true);
  }

  async #report(name: string, ready: boolean): Promise<void> {
    const { client } = this.#fleet;
    const status = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? ('True' as const) : ('False' as const) }],
    };
    await client.patchStatus(Pods, name, { type: 'merge', body: { status } }, inSystem);
  }
}

/** @returns the warnings of a plan that has the pool's nodes reboot. */
async function planReboots(fleet: FleetUnderTest, pool: string): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-plan-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = path.join(dir, 'kernel.json');
  const metadata = {
    name: `90-${pool}`,
    labels: { 'machineconfiguration.openshift.io/role': pool },
  };
  const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfig' };
  await writeFile(file, JSON.stringify({ ...kind, metadata, spec: { kernelArguments: ['quiet'] } }));
  const { stdout } = await fleet.shale('plan', '-f', file);
  return stdout;
}

const grantOf = async (fleet: FleetUnderTest, node: string) =>
  (await fleet.client.get(MachineConfigNodes, node)).spec.grant;

test('a cluster of three nodes, control plane and workers at once: one goes at a time, each once etcd and its budget let it, the one of the operator last', {
  timeout: patience(240_000),
}, async () => {
  const { fleet, etcd } = await startControlPlane({ pace: { operatorNode: 'cp-0' } });
  const byRole = (role: string) => ({ nodeSelector: { matchLabels: { [role]: '' } }, maxUnavailable: 3 });
  await fleet.addPool('master', byRole(CONTROL_PLANE));
  await fleet.addPool('worker', byRole(WORKER));
  const names = ['cp-0', 'cp-1', 'cp-2'];
  for (const name of names) await fleet.addNode(name, 'master', { labels: both });
  await etcd.start(...names);
  expect(await planReboots(fleet, 'master')).not.toContain('no quorum');
  for (const name of names) fleet.script(name, { staysDown: true });
  const config = await fleet.change('master', 'next');
  const order = ['cp-1', 'cp-2', 'cp-0'];
  for (const [index, name] of order.entries()) {
    // It reboots, and is not Ready until its kubelet runs; its member of etcd takes longer.
    await seen(
      fleet.client,
      MachineConfigNodes,
      name,
      ({ status }) => status?.configVersion?.current === config,
    );
    await etcd.setReady(name, false);
    fleet.script(name, {});
    await fleet.setReady(name, true);
    await fleet.runs(name, config);
    const next = order[index + 1];
    if (next === undefined) break;
    await fleet.poolSays(
      'master',
      'UpdatesHeld',
      new RegExp(
        `^True NoQuorumToSpare .*2 of the 2 others are needed while ${next} is down, and pod kube-system/etcd-${name} is not Ready`,
      ),
    );
    expect(await grantOf(fleet, next)).toBeUndefined();
    await etcd.setReady(name, true);
    // The guard that was evicted is missing, so that the next one's may not go yet.
    await fleet.poolSays('master', 'Updating', new RegExp(`${next}: .*PodDisruptionBudget ${GUARD}`));
    expect(await grantOf(fleet, next)).toBeUndefined();
    await etcd.guard(name);
  }
  expect(fleet.mostCordoned('master')).toBe(1);
  await fleet.poolSays('master', 'Updated', /^True AllNodesUpdated All 3 nodes/);
  await fleet.poolSays('worker', 'Updated', /^True/);
});

test('a member of etcd that is not Ready holds the others: plan, explain and the pool say so, until it is', {
  timeout: patience(120_000),
}, async () => {
  const { fleet, etcd } = await startControlPlane();
  await fleet.addPool('blue', { maxUnavailable: 2 });
  await fleet.addPool('green');
  const names = ['cp-0', 'cp-1', 'cp-2'];
  for (const name of names)
    await fleet.addNode(name, name === 'cp-2' ? 'green' : 'blue', { labels: { [CONTROL_PLANE]: '' } });
  await etcd.start(...names);
  await etcd.setReady('cp-2', false);
  const hold =
    'no quorum to spare among the 3 members of etcd: 2 of the 2 others are needed while cp-0 is down, and pod kube-system/etcd-cp-2 is not Ready';
  expect(await planReboots(fleet, 'blue')).toContain(`updates of nodes that vote wait: ${hold}`);
  const config = await fleet.change('blue', 'next');
  await fleet.poolSays('blue', 'UpdatesHeld', new RegExp(`^True NoQuorumToSpare .*${hold}`));
  const { stdout } = await fleet.shale('explain', 'cp-0');
  expect(stdout).toContain(hold);
  for (const name of ['cp-0', 'cp-1']) expect(await grantOf(fleet, name)).toBeUndefined();
  expect(fleet.mostCordoned('blue')).toBe(0);
  await etcd.setReady('cp-2', true);
  // No change of a pod wakes the operator, which checks every half minute.
  await fleet.runs('cp-0', config, 90_000);
  await etcd.guard('cp-0');
  await fleet.runs('cp-1', config, 90_000);
  expect(fleet.mostCordoned('blue')).toBe(1);
});

test('the only node of a cluster is updated: plan says what that means, and nothing is evicted', {
  timeout: patience(120_000),
}, async () => {
  const { fleet, etcd } = await startControlPlane({ pace: { operatorNode: 'only-0' } });
  await fleet.addPool('master');
  await fleet.addNode('only-0', 'master', { labels: both });
  await etcd.start('only-0');
  expect(await planReboots(fleet, 'master')).toContain(
    'node only-0 is the only one of the control plane: nothing answers for the cluster while it is down',
  );
  const config = await fleet.change('master', 'next');
  await fleet.runs('only-0', config);
  expect(await fleet.client.find(Pods, `${GUARD}-only-0`, inSystem)).toBeDefined();
});
