import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus, UpdatePlan } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { START_WAITS } from '../../rollout/gates/gates.ts';
import { condition, machineConfigNode, node, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { stuckBecause } from './stuck-pool.ts';

const NOW = Date.parse('2026-11-20T10:30:00Z');
const TARGET = 'rendered-worker-1';
const plan: UpdatePlan = { config: TARGET, staged: true, actions: [], causes: [], source: '' };
const staged: MachineConfigNodeStatus = { plan, conditions: [condition('UpdatePrepared', 'True')] };
const staging: MachineConfigNodeStatus = {
  conditions: [condition('UpdatePrepared', 'False', 'Staging', 'Preparing')],
};
const degraded: MachineConfigNodeStatus = {
  conditions: [condition('NodeDegraded', 'True', 'no space left')],
};
const failedAt = (config: string): MachineConfigNodeStatus => ({
  ...degraded,
  lastUpdate: {
    config,
    actions: [],
    causes: [],
    source: '',
    bootIDBefore: '1',
    bootIDAfter: '2',
    startedAt: '',
    finishedAt: '',
    result: 'RolledBack',
  },
});
const grant = { level: 'Disrupt', config: TARGET, leaseHolder: 'shale-operator' } as const;
const inMaintenance = node(
  'b',
  { [annotations.plannedMaintenance]: '{"by":"ops","reason":"new disk"}' },
  true,
);
const MAINTENANCE =
  'flagged for maintenance by ops: new disk, cordoned, and not by Shale; to end it: shale maintenance end b';

interface Case {
  readonly statuses: readonly MachineConfigNodeStatus[];
  readonly conditions?: Condition[];
  readonly granted?: boolean;
  readonly nodes?: readonly ReturnType<typeof node>[];
}

function stuck({ statuses, conditions = [], granted = false, nodes = [] }: Case): string | undefined {
  const members = statuses.map((status, index) =>
    machineConfigNode('abc'[index] ?? '', status, granted ? { grant } : {}),
  );
  const others = members.filter(({ metadata }) =>
    nodes.every((each) => each.metadata.name !== metadata.name),
  );
  const worker = pool(conditions);
  const cluster = observed({
    pools: [worker],
    machineConfigNodes: members,
    nodes: [...nodes, ...others.map(({ metadata }) => node(metadata.name))],
  });
  return stuckBecause(worker, members, members, cluster, NOW);
}

const held = (reason: string, lastTransitionTime = '2026-11-20T10:00:00Z') => [
  { ...condition('UpdatesHeld', 'True', 'alert X is firing', reason), lastTransitionTime },
];

test.each<[string, Case, string | RegExp]>([
  [
    'one node failed and is left',
    { statuses: [failedAt(TARGET)], granted: true },
    'node a failed: no space left; fix the node and run shale retry a, fix the MachineConfig, or roll back: shale rollback worker',
  ],
  [
    'what degrades the only node is no failed update',
    { statuses: [degraded] },
    'node a failed: no space left; fix the MachineConfig, or roll back: shale rollback worker',
  ],
  [
    'only failed nodes are left',
    { statuses: [failedAt(TARGET), degraded] },
    /^node a failed: .* \(and 1 more\)$/,
  ],
  [
    'a node in maintenance is left',
    { statuses: [degraded, staged], nodes: [inMaintenance] },
    /^node a failed: /,
  ],
  [
    'all that are left are skipped',
    { statuses: [staged], nodes: [node('a', { [annotations.plannedMaintenance]: '{"by":"ops"}' })] },
    'node a is skipped: flagged for maintenance by ops; to end it: shale maintenance end a',
  ],
  [
    'the slot is taken by a node in maintenance',
    {
      statuses: [staged, staged],
      conditions: [condition('Updating', 'True', '', 'MaxUnavailableReached')],
      nodes: [inMaintenance],
    },
    `no node can start: node b uses up maxUnavailable: ${MAINTENANCE}; or raise maxUnavailable`,
  ],
  [
    'the slot is taken by a node that somebody cordoned',
    {
      statuses: [staged, staged],
      conditions: [condition('Updating', 'True', '', 'MaxUnavailableReached')],
      nodes: [node('b', {}, true)],
    },
    'no node can start: node b uses up maxUnavailable: cordoned, and not by Shale; kubectl uncordon b; or raise maxUnavailable',
  ],
  [
    'pools wait for one another',
    { statuses: [staged], conditions: held('DependencyCircle', '2026-11-20T10:29:59Z') },
    'updates are held: alert X is firing',
  ],
  [
    'an alert has been firing for long',
    { statuses: [staged], conditions: held('AlertsFiring') },
    'updates are held: alert X is firing',
  ],
])('nothing moves any more where %s', (_, of, why) => {
  if (typeof why === 'string') expect(stuck(of)).toBe(why);
  else expect(stuck(of)).toMatch(why);
});

const RACK = 'example.com/rack';

/** @returns why a pool of one rack, of whose nodes one may be unavailable, comes no further. */
function stuckRack(b: ReturnType<typeof node>, status: MachineConfigNodeStatus = staged) {
  const made = pool([condition('Updating', 'True', '', 'MaxUnavailableReached')]);
  const shale = { failureDomains: { topologyKey: RACK } };
  const worker = { ...made, spec: { ...made.spec, maxUnavailable: 3, shale } };
  const labelled = [node('a'), b].map((each) => ({
    ...each,
    metadata: { ...each.metadata, labels: { [RACK]: 'r1' } },
  }));
  const members = [machineConfigNode('a', staged), machineConfigNode('b', status)];
  const cluster = observed({ pools: [worker], machineConfigNodes: members, nodes: labelled });
  return stuckBecause(worker, members, members, cluster, NOW);
}

test('nothing moves any more where others use up the failure domain of all that are left', () => {
  expect(stuckRack(inMaintenance)).toBe(
    `no node of failure domain r1 can start: node b uses up the domain's maxUnavailable: ${MAINTENANCE}; or raise the domain's maxUnavailable`,
  );
});

test('something may move where the failure domain has room, or the rollout itself uses it up', () => {
  expect(stuckRack(node('b'))).toBeUndefined();
  const reboots = { plan, conditions: [condition('RebootedNode', 'Unknown', 'reboots')] };
  expect(stuckRack(node('b', { [annotations.cordonedByShale]: 'true' }, true), reboots)).toBeUndefined();
});

test.each<[string, Case]>([
  ['nothing is left', { statuses: [] }],
  ['a node waits for its turn', { statuses: [staged] }],
  ['a node stages', { statuses: [degraded, staging] }],
  ['a daemon has not reported', { statuses: [degraded, {}] }],
  ['a failure is tried again', { statuses: [degraded], granted: true }],
  ['the failure is of an earlier target', { statuses: [failedAt('rendered-worker-0')] }],
  [
    'a failed node stages another target',
    { statuses: [{ conditions: [...(degraded.conditions ?? []), ...(staging.conditions ?? [])] }] },
  ],
  [
    'a node is at work while another takes the slot',
    {
      statuses: [{ plan, conditions: [condition('RebootedNode', 'Unknown', 'reboots')] }, staged],
      conditions: [condition('Updating', 'True', '', 'MaxUnavailableReached')],
      nodes: [inMaintenance],
    },
  ],
  [
    'an alert fires since a moment',
    { statuses: [staged], conditions: held('AlertsFiring', '2026-11-20T10:25:00Z') },
  ],
  ['nodes bake', { statuses: [staged], conditions: held('Baking') }],
  ['another pool is waited for', { statuses: [staged], conditions: held('AwaitingPools') }],
])('something may move where %s', (_, of) => {
  expect(stuck(of)).toBeUndefined();
});

const SINCE = { moment: '2026-11-20T10:29:59Z', long: '2026-11-20T10:00:00Z' };
const STUCK_SINCE = {
  progress: [],
  others: ['long'],
  admin: ['moment', 'long'],
};

test.each([...START_WAITS])(
  'nothing moves any more for %s as long as its gate says: %s',
  (reason, endedBy) => {
    const isStuck = (since: string) =>
      stuck({ statuses: [staged], conditions: held(reason, since) }) ===
      'updates are held: alert X is firing';
    const found = Object.entries(SINCE).flatMap(([name, since]) => (isStuck(since) ? [name] : []));
    expect(found).toEqual(STUCK_SINCE[endedBy]);
  },
);

test('a reason of a newer operator is waited for', () => {
  expect(stuck({ statuses: [staged], conditions: held('SomethingNewer') })).toBeUndefined();
});
