import { describe, expect, test } from 'vitest';
import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, UpdatePlan } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import {
  aBuild,
  aMachineConfigNode,
  aNode,
  aPool,
  aSuccess,
  condition,
  REBOOT,
} from '../../test/fixtures/objects.ts';
import type { NodeRow, PageView } from '../model/view.ts';
import { type ClusterObjects, readView } from './read-view.ts';

const NOW = Date.parse('2026-11-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const NOTHING: ClusterObjects = {
  pools: [],
  machineConfigNodes: [],
  nodes: [],
  builds: [],
  leases: [],
  machineConfiguration: undefined,
  inMaintenance: new Set(),
  trouble: [],
  silence: undefined,
};
const TARGET = 'rendered-worker-1';
const plan: UpdatePlan = { config: TARGET, staged: true, actions: [...REBOOT], causes: [], source: 'label' };

const view = (objects: Partial<ClusterObjects>, before?: PageView, now = NOW): PageView =>
  readView({ ...NOTHING, ...objects }, before, now);

function lease(node: string, holder: string, takenAt = at(-60)): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseNameOf(node), namespace: 'medik8s-leases' },
    spec: { holderIdentity: holder, acquireTime: takenAt, renewTime: at(-1), leaseDurationSeconds: 300 },
  };
}

function unknown(type: string, message: string, since = at(-10)): Condition {
  return { type, status: 'Unknown', reason: type, message, lastTransitionTime: since };
}

describe('the state of a node', () => {
  const updated = { configVersion: { current: TARGET, desired: TARGET }, conditions: [condition('Updated')] };
  const grant = { level: 'Disrupt', config: TARGET, leaseHolder: 'shale-operator' } as const;
  const cordoned: Partial<Node> = {
    metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } },
    spec: { unschedulable: true },
  };
  const staged = { plan, conditions: [condition('UpdatePrepared', 'True', 'waits for its turn')] };

  test.each<[NodeRow['state'], string, MachineConfigNode, Partial<Node>, Partial<NodeRow>]>([
    ['updated', 'runs its target', aMachineConfigNode('a', {}, updated), {}, {}],
    ['silent', 'has not reported', aMachineConfigNode('a'), {}, { what: 'the daemon has not reported yet' }],
    ['staged', 'is staged', aMachineConfigNode('a', {}, staged), {}, { what: 'waits for its turn' }],
    ['draining', 'is cordoned by Shale', aMachineConfigNode('a', {}, staged), cordoned, { cordoned: true }],
    ['applying', 'has a grant', aMachineConfigNode('a', { grant }, staged), cordoned, {}],
    [
      'applying',
      'says what it does',
      aMachineConfigNode('a', {}, { plan, conditions: [unknown('UpdateExecuted', 'writes files')] }),
      {},
      { what: 'writes files', since: at(-10) },
    ],
    [
      'rebooting',
      'reboots',
      aMachineConfigNode('a', { grant }, { plan, conditions: [unknown('RebootedNode', '')] }),
      cordoned,
      {},
    ],
    [
      'degraded',
      'failed',
      aMachineConfigNode('a', {}, { plan, conditions: [condition('NodeDegraded', 'True', 'no space left')] }),
      {},
      { what: 'no space left' },
    ],
  ])('is %s when it %s', (state, _, machineConfigNode, node, more) => {
    const { nodes } = view({ nodes: [aNode('a', node)], machineConfigNodes: [machineConfigNode] });
    expect(nodes['a']).toMatchObject({
      pool: 'worker',
      state,
      ready: node.spec === undefined || true,
      ...more,
    });
  });

  test('is unmanaged without a MachineConfigNode', () => {
    expect(view({ nodes: [aNode('a')] }).nodes['a']).toMatchObject({ pool: '', state: 'unmanaged' });
  });

  test('is in no pool where two custom pools claim it, and says so', () => {
    const labels = { 'node-role.kubernetes.io/infra': '', 'node-role.kubernetes.io/storage': '' };
    const claimed = (name: string, with2 = true) =>
      aNode(name, { metadata: { name, labels: with2 ? labels : { 'node-role.kubernetes.io/infra': '' } } });
    const pools = [aPool('infra'), aPool('storage')];
    const infra = aMachineConfigNode('a', { pool: { name: 'infra' } }, updated);
    const what = expect.stringMatching(
      /^it is in no pool, because custom pools infra and storage both select it; change its labels, /,
    );
    const during = view({ pools, nodes: [claimed('a'), claimed('b')], machineConfigNodes: [infra] });
    expect(during.nodes).toMatchObject({
      a: { pool: '', state: 'updated', what, obstacle: what },
      b: { pool: '', state: 'unmanaged', what },
    });
    const after = view({ pools, nodes: [claimed('a', false)], machineConfigNodes: [infra] });
    expect(after.nodes['a']).toMatchObject({ pool: 'infra', state: 'updated' });
    expect(after.nodes['a']?.what).toBeUndefined();
  });

  test('exists for a deleted Node with a MachineConfigNode, too', () => {
    const { nodes } = view({ machineConfigNodes: [aMachineConfigNode('a', {}, updated)] });
    expect(nodes['a']).toMatchObject({ state: 'updated', ready: false });
  });
});

test('what the operator cannot do is shown beside the failure of the update', () => {
  const conditions = [
    condition('NodeDegraded', 'True', 'no space left'),
    condition('StepsFailing', 'True', 'cordoning it fails: denied'),
  ];
  const failed = aMachineConfigNode('a', {}, { plan, conditions });
  const { nodes } = view({ nodes: [aNode('a')], machineConfigNodes: [failed] });
  expect(nodes['a']?.what).toBe('no space left; cordoning it fails: denied');
});

test('a node whose lease is held by another is skipped, and says so', () => {
  const { nodes } = view({
    nodes: [aNode('a')],
    machineConfigNodes: [aMachineConfigNode('a', {}, { plan, conditions: [condition('UpdatePrepared')] })],
    leases: [lease('a', 'node-healthcheck')],
  });
  const obstacle = 'its lease is held by node-healthcheck';
  expect(nodes['a']).toMatchObject({ state: 'staged', obstacle, what: `skipped: ${obstacle}` });
});

test('maintenance has a reason, by annotation and by NodeMaintenance', () => {
  const flagged = aNode('a', {
    metadata: {
      name: 'a',
      annotations: { [annotations.plannedMaintenance]: '{"reason":"new disk","by":"ops"}' },
    },
  });
  const { nodes } = view({
    nodes: [flagged, aNode('b')],
    machineConfigNodes: [aMachineConfigNode('a'), aMachineConfigNode('b')],
    inMaintenance: new Set(['b']),
  });
  expect(nodes['a']?.obstacle).toBe('flagged for maintenance by ops: new disk');
  expect(nodes['b']?.obstacle).toBe('a NodeMaintenance is active');
});

test('only leases that have not expired are shown', () => {
  const expired = lease('c', 'somebody');
  const { leases } = view({
    leases: [
      lease('a', 'shale-operator'),
      lease('b', 'node-healthcheck'),
      { ...expired, spec: { ...expired.spec, renewTime: at(-301) } },
    ],
  });
  expect(leases).toEqual({
    a: { node: 'a', holder: 'shale-operator', ours: true, since: NOW - 60_000 },
    b: {
      node: 'b',
      holder: 'node-healthcheck',
      ours: false,
      since: NOW - 60_000,
      until: NOW + 299_000,
    },
  });
});

test('nodes with equal plans share one row', () => {
  const machineConfigNodes = ['a', 'b'].map((name) => aMachineConfigNode(name, {}, { plan: { ...plan } }));
  const { nodes, plans } = view({ machineConfigNodes });
  expect(Object.values(plans)).toEqual([{ actions: ['Reboot'], causes: [], source: 'label' }]);
  expect(nodes['a']?.plan).toBe(nodes['b']?.plan);
});

describe('a pool', () => {
  test.each([
    ['Updated', [condition('Updated', 'True', 'All 3 nodes run it')], {}, 'All 3 nodes run it'],
    [
      'NodesUpdating',
      [{ ...condition('Updating', 'True', '1 of 3'), reason: 'NodesUpdating' }],
      {},
      '1 of 3',
    ],
    [
      'Paused',
      [{ ...condition('Updating', 'False', 'The pool is paused'), reason: 'Paused' }],
      { paused: true },
      'The pool is paused',
    ],
    ['Degraded', [condition('Updating'), condition('Degraded', 'True', 'a failed')], {}, 'a failed'],
    [
      'Degraded',
      [condition('Updating'), condition('RenderDegraded', 'True', 'no such unit')],
      {},
      'no such unit',
    ],
    ['Unknown', [], {}, 'The operator has not reported on this pool yet'],
  ])('is %s', (state, conditions, spec, what) => {
    const pool = { ...aPool('worker', spec), status: { machineCount: 3, conditions } };
    expect(view({ pools: [pool] }).pools['worker']).toMatchObject({ state, what, nodes: { total: 3 } });
  });
});

describe('the change of a pool', () => {
  const pool = (given: Record<string, string>, ran?: string) => ({
    ...aPool('worker', { configuration: { name: 'new' } }),
    metadata: { name: 'worker', annotations: given },
    ...(ran === undefined ? {} : { status: { configuration: { name: ran } } }),
  });
  const row = (...of: Parameters<typeof pool>) => view({ pools: [pool(...of)] }).pools['worker'];

  test.each([
    ['old', { config: 'new', from: 'old' }],
    ['new', { config: 'new' }],
    [undefined, { config: 'new' }],
  ])('after %s', (ran, expected) => {
    const { config, from } = row({}, ran) ?? {};
    expect({ config, ...present({ from }) }).toEqual(expected);
  });

  test('is to the config of a rollback, and has the source of the MachineConfigs', () => {
    const given = {
      [annotations.rollback]: '{"config":"old","by":"ops"}',
      [annotations.sourceUrl]: 'https://git.example.com/nodes',
      [annotations.sourceRevision]: '7f3c2d9',
    };
    expect(row(given, 'new')).toMatchObject({
      config: 'old',
      from: 'new',
      holds: [{ kind: 'rollback', by: 'ops' }],
      source: { url: 'https://git.example.com/nodes', revision: '7f3c2d9' },
    });
  });
});

test('the row of a pool changes when its window closes, without a change of the pool', () => {
  const maintenanceWindows = [{ schedule: '0 11 * * *', duration: '61m' }];
  const pool = aPool('worker', { shale: { maintenanceWindows } });
  const at = (now: number) => view({ pools: [pool] }, undefined, now).pools['worker']?.holds?.[0]?.kind;
  expect([at(NOW), at(NOW + 59_000), at(NOW + 60_000)]).toEqual([
    'window-open',
    'window-open',
    'window-closed',
  ]);
});

test.each([true, undefined])('a node whose next boot is its target is armed (%s)', (nextBoot) => {
  const status = { plan: { ...plan, ...present({ nextBoot }) }, conditions: [condition('UpdatePrepared')] };
  const { nodes } = view({ nodes: [aNode('a')], machineConfigNodes: [aMachineConfigNode('a', {}, status)] });
  expect(nodes['a']).toMatchObject({ state: 'staged' });
  expect(nodes['a']?.nextBoot).toBe(nextBoot);
});

test.each([
  ['names the pod and its budget', [{ pod: 'shop/web-1', reason: 'PodDisruptionBudget web' }]],
  ['of an operator that reports no field has its message alone', undefined],
])('a drain that waits %s', (_, blockedBy) => {
  const message = "The node is being drained; pod shop/web-1 can't be evicted: PodDisruptionBudget web";
  const node = aNode('a', {
    metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } },
    spec: { unschedulable: true },
  });
  const status = {
    plan,
    conditions: [condition('UpdatePrepared'), unknown('Drained', message)],
    ...present({ drain: blockedBy && { blockedBy } }),
  };
  const { nodes } = view({ nodes: [node], machineConfigNodes: [aMachineConfigNode('a', {}, status)] });
  expect(nodes['a']).toMatchObject({ state: 'draining', what: message });
  expect(nodes['a']?.blockedBy).toEqual(blockedBy);
});

test('a silent cluster is a remark that says since when', () => {
  const { remarks } = view({ trouble: ['No leases'], silence: { since: NOW, why: 'ECONNREFUSED' } });
  expect(Object.values(remarks)).toEqual([
    { text: 'No leases' },
    {
      text: 'The cluster does not respond, so this page may be out of date: ECONNREFUSED',
      silentSince: NOW,
    },
  ]);
});

test('the row of a build has its state, pool, transitions and the end of its log', () => {
  const build = aBuild('b', TARGET, {
    status: { ...aSuccess('a'), logTail: ['one', 'two'], transitions: [{ from: 'x', actions: 'Reboot' }] },
  });
  const { builds, logs } = view({ builds: [build] });
  expect(builds['b']).toMatchObject({
    state: 'Succeeded',
    pool: 'worker',
    way: 'Append',
    transitions: [{ from: 'x', actions: 'Reboot' }],
  });
  expect(logs).toEqual({ b: ['one', 'two'] });
});

describe('the timeline', () => {
  const node = aNode('a', {
    metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } },
    spec: { unschedulable: true },
  });
  const draining = {
    nodes: [node],
    machineConfigNodes: [aMachineConfigNode('a', {}, { plan })],
    leases: [lease('a', 'shale-operator')],
  };
  const rebooting = {
    ...draining,
    machineConfigNodes: [
      aMachineConfigNode(
        'a',
        {},
        { plan, conditions: [unknown('RebootedNode', ''), condition('UpdateExecuted')].map(atMinus10) },
      ),
    ],
  };
  const done = {
    nodes: [aNode('a')],
    machineConfigNodes: [
      aMachineConfigNode(
        'a',
        {},
        {
          configVersion: { current: TARGET, desired: TARGET },
          conditions: [condition('Updated')],
          lastUpdate: {
            ...plan,
            startedAt: at(-10.5),
            finishedAt: at(30),
            bootIDBefore: '1',
            bootIDAfter: '2',
            result: 'Succeeded',
          },
        },
      ),
    ],
  };
  const spans = ({ segments }: PageView) =>
    Object.values(segments)
      .toSorted((a, b) => a.start - b.start)
      .map(({ kind, start, end }) => [kind, (start - NOW) / 1000, end && (end - NOW) / 1000]);

  test('keeps a drain that the objects no longer contain, and has one segment for each event', () => {
    const first = view(draining);
    expect(spans(first)).toEqual([['drain', -60, undefined]]);
    const second = view(rebooting, first);
    expect(spans(second)).toEqual([
      ['drain', -60, -10],
      ['reboot', -10, undefined],
    ]);
    const third = view(done, second, NOW + 31_000);
    expect(spans(third)).toEqual([
      ['drain', -60, -10],
      ['reboot', -10.5, 30],
    ]);
    expect(view(done, third, NOW + 32_000)).toBe(third);
  });

  test('goes on while the health checks of a node have not passed', () => {
    const verifying = {
      ...rebooting,
      machineConfigNodes: [
        aMachineConfigNode(
          'a',
          {},
          {
            plan,
            conditions: [
              ...[condition('UpdateExecuted'), condition('RebootedNode')].map(atMinus10),
              unknown('UpdatePostActionComplete', 'health check 10-etcd failed', at(20)),
            ],
          },
        ),
      ],
    };
    const seen = view(verifying, view(rebooting), NOW + 30_000);
    expect(seen.nodes['a']?.state).toBe('verifying');
    expect(spans(seen)).toEqual([
      ['drain', -60, -10],
      ['reboot', -10, undefined],
    ]);
  });

  test('ends an aborted drain when it is no longer observed', () => {
    const first = view(draining);
    const second = view(
      { nodes: [aNode('a')], machineConfigNodes: [aMachineConfigNode('a')] },
      first,
      NOW + 5_000,
    );
    expect(spans(second)).toEqual([['drain', -60, 5]]);
  });

  test('drops segments after a day', () => {
    expect(spans(view(done, undefined, NOW + 25 * 3_600_000))).toEqual([]);
  });
});

function atMinus10(given: Condition): Condition {
  return { ...given, lastTransitionTime: at(-10) };
}
