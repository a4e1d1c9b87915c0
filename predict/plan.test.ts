import { expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { PlanOutput } from '../cli/command-line/output-schemas.ts';
import { formatPlan } from '../cli/plan/plan-text.ts';
import { LONG_AGO, REBOOT } from '../test/fixtures/objects.ts';
import { machineConfigNode, node, pool } from '../test/fixtures/observed-cluster.ts';
import { planned } from '../test/fixtures/planned.ts';
import { offlineCluster } from './objects/offline-cluster.ts';
import type { PoolAsk } from './plan.ts';

test('a soft reboot fits the schema of -o json', () => {
  const plan = {
    pool: 'worker',
    to: 'rendered-worker-1',
    actions: [],
    causes: [],
    softReboot: true,
    changes: [],
  };
  expect(PlanOutput.parse([plan])).toEqual([plan]);
});

const NOTHING = { nothing: 0, live: 0, reload: 0, restart: 0, drain: 0, reboot: 0 } as const;
const unchanged: PoolAsk = { pool: 'worker', to: 'rendered-worker-1', actions: [], causes: [], changes: [] };
test.each<[string, Partial<PoolAsk>, string]>([
  ['without a cluster', {}, 'pool worker: no changes'],
  [
    'where all nodes run the target',
    { nodes: 3, outcomes: { ...NOTHING, nothing: 3 } },
    'pool worker (3 nodes): no changes',
  ],
  [
    'where nodes are still on their way to it',
    { nodes: 3, outcomes: { ...NOTHING, nothing: 1, reboot: 2 } },
    'pool worker (3 nodes): no changes to the target, which 2 nodes do not run yet\n  nodes: 1 no change, 2 reboot',
  ],
])('a plan that changes nothing, %s', (_what, ask, text) => {
  expect(formatPlan([{ ...unchanged, ...ask }], { diffs: 'none' })).toBe(text);
});

const RACK = 'example.com/rack';
const karg: MachineConfig = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '50-karg', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  spec: { kernelArguments: ['quiet'] },
};
/** @param racks of the nodes; '' for a node without the label. @param limit of a failure domain; absent: none is set. */
const rebootsOf = (racks: readonly string[], limit?: number | string) => {
  const made = pool([]);
  const failureDomains = { topologyKey: RACK, ...(limit !== undefined && { maxUnavailable: limit }) };
  const worker = {
    ...made,
    spec: { ...made.spec, ...(limit !== undefined && { shale: { failureDomains } }) },
  };
  // All went together, in five minutes.
  const lastUpdate = {
    config: 'rendered-worker-0',
    actions: [...REBOOT],
    causes: [],
    source: '',
    result: 'Succeeded' as const,
    bootIDBefore: '1',
    bootIDAfter: '2',
    startedAt: LONG_AGO,
    finishedAt: '2026-01-01T00:05:00Z',
  };
  const named = racks.map((rack, index) => ({ rack, name: `worker-${index}` }));
  const nodes = named.map(({ rack, name }) => {
    const made = node(name);
    return { ...made, metadata: { ...made.metadata, labels: rack === '' ? {} : { [RACK]: rack } } };
  });
  const machineConfigNodes = named.map(({ name }) => machineConfigNode(name, { lastUpdate }));
  const [plan] = planned(offlineCluster([worker]), offlineCluster([worker, karg]), {
    cluster: { rendered: new Map(), machineConfigNodes, nodes, builds: [] },
  });
  return plan !== undefined && 'time' in plan ? plan.time : undefined;
};

test.each<[string, readonly string[], number | string | undefined, number, number | undefined]>([
  ['without failure domains', ['a', 'a', 'a', 'b'], undefined, 5, undefined],
  ['each of its own rack', ['a', 'b', 'c', 'd'], 1, 5, undefined],
  ['three of one rack', ['a', 'a', 'a', 'b'], 1, 15, 3],
  ['three of one rack that lets half of them go', ['a', 'a', 'a', 'b'], '50%', 15, 3],
  ['four of one rack that lets half of them go', ['a', 'a', 'a', 'a'], '50%', 10, 2],
  ['three without the label, which are a domain together', ['', '', '', 'a'], 1, 15, 3],
])('the estimate of nodes that reboot, %s', (_what, racks, limit, minutes, rounds) => {
  const pace = 'the last 4 nodes to drain or reboot took 5m';
  expect(rebootsOf(racks, limit)).toEqual({
    seconds: minutes * 60,
    why:
      rounds === undefined ? pace : `${pace}, and ${rounds} nodes of one failure domain go one after another`,
  });
});
