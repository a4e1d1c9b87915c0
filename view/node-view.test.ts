import { describe, expect, test } from 'vitest';
import { formatClusterApiUpdate } from '../api/annotation-requests.ts';
import type { MachineConfigNodeStatus, UpdatePlan } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { UNREPORTED_STATUS } from '../api/object.ts';
import { REBOOT } from '../test/fixtures/objects.ts';
import {
  condition,
  machineConfigNode,
  node,
  observed,
  pool,
  SINCE,
} from '../test/fixtures/observed-cluster.ts';
import { nodeView, timedNode } from './node-view.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const LATER = '2026-11-20T10:04:00Z';
const plan: UpdatePlan = {
  config: 'rendered-worker-1',
  staged: true,
  actions: [{ type: 'Drain' }, { type: 'Restart', service: 'chronyd.service' }],
  causes: [],
  source: 'the image label',
};
const prepared = condition('UpdatePrepared', 'True', 'waits for permission');
const lease = (holderIdentity: string, renewTime: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a' },
  spec: { holderIdentity, renewTime, leaseDurationSeconds: 600 },
});

function view(status: MachineConfigNodeStatus | undefined, more: Parameters<typeof observed>[0] = {}) {
  const object = machineConfigNode('a', status);
  return nodeView(object, observed({ machineConfigNodes: [object], nodes: [node('a')], ...more }), NOW);
}

describe('a node with hooks', () => {
  const hooked = (phase: 'before' | 'after', ...pending: readonly string[]) =>
    node('a', {
      [annotations.cordonedByShale]: 'true',
      [annotations.hooks]: `${phase} ${SINCE}`,
      ...Object.fromEntries(pending.map((name) => [`${phase}.hooks.shale.dev/${name}`, 'requested'])),
    });
  const leases = [lease('shale-operator', LATER)];
  const updated: MachineConfigNodeStatus = {
    configVersion: { current: 'rendered-worker-1', desired: 'rendered-worker-1' },
    conditions: [condition('Updated', 'True')],
  };
  const waiting = (when: string) =>
    `has been waiting since 2026-11-20T10:00:00.000Z for 1 hook to be cleared ${when}`;

  test.each<[string, MachineConfigNodeStatus, ReturnType<typeof node>, string, string | undefined]>([
    [
      'before it is drained',
      { conditions: [prepared], plan },
      hooked('before', 'lb'),
      'draining',
      waiting('before it is drained or rebooted: lb'),
    ],
    [
      'whose hooks are cleared',
      { conditions: [prepared], plan },
      hooked('before'),
      'draining',
      'is being drained',
    ],
    [
      'that is updated',
      updated,
      hooked('after', 'gpu'),
      'updated',
      waiting('before it is schedulable again: gpu'),
    ],
  ])('%s', (_what, status, object, state, what) => {
    expect(view(status, { nodes: [object], leases })).toMatchObject({ state, what });
  });
});

describe('a pool whose updates are held', () => {
  const held = condition('UpdatesHeld', 'True', 'pool canary is not Updated', 'AwaitingPools');
  test.each<[string, MachineConfigNodeStatus, string | undefined]>([
    ['a node that could start', { conditions: [prepared], plan }, 'held: pool canary is not Updated'],
    ['a node that stages', { conditions: [condition('UpdatePrepared', 'False', 'Staging')] }, 'Staging'],
    [
      'a node at work',
      { conditions: [prepared, condition('UpdateExecuted', 'Unknown', 'restarts')], plan },
      'restarts',
    ],
  ])('%s', (_what, status, what) => {
    expect(view(status, { pools: [pool([held])] }).what).toBe(what);
  });

  test('no more', () => {
    const pools = [pool([{ ...held, status: 'False' }])];
    expect(view({ conditions: [prepared], plan }, { pools }).what).toBe('waits for permission');
  });
});

describe('a pool that Cluster API drives', () => {
  const worker = pool([]);
  const owner = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } as const;
  const driven = { ...worker, spec: { ...worker.spec, shale: { drivenBy: owner } } };
  const object = (handover?: string) => {
    const bare = machineConfigNode('a', { conditions: [prepared], plan });
    const set = handover === undefined ? {} : { [annotations.clusterApiUpdate]: handover };
    return { ...bare, metadata: { ...bare.metadata, annotations: set } };
  };
  const seen = (handover?: string) => {
    const member = object(handover);
    const cluster = observed({ machineConfigNodes: [member], nodes: [node('a')], pools: [driven] });
    return nodeView(member, cluster, NOW);
  };
  const machine = { namespace: 'default', name: 'workers-7xq2' };
  const by = (name: string) => formatClusterApiUpdate({ owner: { ...owner, name }, machine, at: SINCE });

  test('a node that it has not handed over', () => {
    expect(seen()).toMatchObject({
      state: 'staged',
      what: 'waits: Cluster API (MachineDeployment default/workers) has not handed the node over',
      handedOver: undefined,
    });
  });

  test('a node that it has handed over', () => {
    expect(seen(by('workers'))).toMatchObject({
      what: 'waits for permission',
      handedOver: {
        owner: 'MachineDeployment default/workers',
        machine: 'default/workers-7xq2',
        since: SINCE,
      },
    });
  });

  test.each([
    [by('others'), /^waits: the node was handed over by MachineDeployment default\/others, but/],
    ['true', /^waits: annotation shale.dev\/cluster-api-update of its MachineConfigNode can't be read/],
  ])('a node that was handed over by %s', (handover, what) => {
    expect(seen(handover).what).toMatch(what);
  });
});

describe('a pool whose reboots are left to others', () => {
  const worker = pool([]);
  const left = { ...worker, spec: { ...worker.spec, shale: { rebootPolicy: 'AtNextReboot' } as const } };
  const toReboot = { ...plan, actions: [...REBOOT] };
  test.each<[string, MachineConfigNodeStatus, string]>([
    [
      'a node that boots its target next',
      {
        conditions: [condition('UpdatePrepared', 'True', 'at the next reboot')],
        plan: { ...toReboot, nextBoot: true },
      },
      'at the next reboot',
    ],
    [
      'a node whose target needs a reboot',
      { conditions: [prepared], plan: toReboot },
      'reboots are left to others (spec.shale.rebootPolicy)',
    ],
    [
      'a node whose target needs none',
      { conditions: [prepared], plan: { ...plan, actions: [] } },
      'waits for permission',
    ],
  ])('%s', (_what, status, what) => {
    expect(view(status, { pools: [left] }).what).toBe(what);
  });
});

describe('the state of a node', () => {
  test.each<[string, MachineConfigNodeStatus | undefined, object]>([
    [
      'whose daemon has not reported',
      undefined,
      { state: 'silent', what: 'the daemon has not reported yet' },
    ],
    [
      'that the API server has given a status',
      UNREPORTED_STATUS,
      { state: 'silent', what: 'the daemon has not reported yet' },
    ],
    [
      'that stages its target',
      {
        conditions: [condition('UpdatePrepared', 'False', 'Staging the target')],
        staging: { bytesDone: 1, bytesTotal: 4 },
      },
      {
        state: 'staging',
        since: SINCE,
        what: 'Staging the target',
        staging: { bytesDone: 1 },
      },
    ],
    [
      'that has not started to stage its target',
      {
        conditions: [
          condition('UpdatePrepared', 'False', 'No update is at this stage', 'NotYet'),
          condition('Updated', 'False', 'No update is at this stage', 'NotYet'),
        ],
      },
      { state: 'staging', since: SINCE },
    ],
    [
      'that stages its target, since its last update',
      {
        conditions: [
          condition('UpdatePrepared', 'False', 'Staging the target'),
          { ...condition('Updated', 'False', ''), lastTransitionTime: LATER },
        ],
      },
      { state: 'staging', since: LATER },
    ],
    [
      'that waits for permission',
      { conditions: [prepared], plan },
      { state: 'staged', what: 'waits for permission', actions: 'Drain, Restart(chronyd.service)' },
    ],
    [
      'that applies its target',
      { conditions: [prepared, condition('UpdateExecuted', 'Unknown', 'restarts chronyd.service')], plan },
      { state: 'applying', since: SINCE, what: 'restarts chronyd.service' },
    ],
    [
      'that reboots',
      { conditions: [prepared, condition('RebootedNode', 'Unknown', 'the node reboots')], plan },
      { state: 'rebooting', what: 'the node reboots' },
    ],
    [
      'that runs its target and whose health checks do not pass yet',
      {
        conditions: [
          prepared,
          condition('UpdateExecuted', 'True', 'The target is staged as the next boot'),
          condition('RebootedNode', 'True', 'The node booted the target'),
          { ...condition('UpdatePostActionComplete', 'Unknown', 'etcd; until'), lastTransitionTime: LATER },
        ],
        verification: { waitsFor: 'etcd', check: '10-etcd', output: 'away', deadline: LATER },
        plan,
      },
      {
        state: 'verifying',
        since: LATER,
        what: 'etcd',
        verification: { check: '10-etcd', output: 'away', deadline: LATER },
      },
    ],
    [
      'that runs its target and whose daemon reports no field',
      { conditions: [prepared, condition('UpdatePostActionComplete', 'Unknown', 'etcd is away')], plan },
      { state: 'verifying', since: SINCE, what: 'etcd is away', verification: undefined },
    ],
    [
      'that failed',
      { conditions: [condition('NodeDegraded', 'True', 'no such registry')] },
      { state: 'degraded', since: SINCE, what: 'no such registry' },
    ],
    [
      'that runs its target',
      {
        conditions: [condition('Updated', 'True', 'the node runs its target')],
        configVersion: { current: 'rendered-worker-1', desired: 'rendered-worker-1' },
      },
      { state: 'updated', since: SINCE, config: { current: 'rendered-worker-1' } },
    ],
  ])('%s', (_, status, expected) => {
    expect(view(status)).toMatchObject(expected);
  });
});

test.each([
  [{ name: 'bootc', version: '1.16.0' }, 'bootc 1.16.0'],
  [{ name: 'ostree' }, 'ostree'],
] as const)('the backend %j', (osBackend, expected) => {
  expect(view({ osBackend }).osBackend).toBe(expected);
});

test('a node that is not ready says why, as its Node does', () => {
  const message = 'Kubelet stopped posting node status.';
  const away = { ...node('a'), status: { conditions: [condition('Ready', 'Unknown', message)] } };
  expect(view({}, { nodes: [away] })).toMatchObject({ ready: false, notReady: message });
  expect(view({}, { nodes: [] }).notReady).toBeUndefined();
  expect(view({}).notReady).toBeUndefined();
});

test.each([
  ['staged', [], 'staged', 'patch fails: no'],
  ['degraded', [condition('NodeDegraded', 'True', 'no space')], 'degraded', 'no space; patch fails: no'],
])('a node that is %s says first what the operator can’t do on it', (_what, more, state, what) => {
  const failing = condition('StepsFailing', 'True', 'patch fails: no');
  expect(view({ conditions: [prepared, failing, ...more], plan })).toMatchObject({ state, what });
});

test('a node that failed and rolls back says both', () => {
  const failed = condition('NodeDegraded', 'True', 'etcd is away', 'HealthCheckFailed');
  const back = condition('RebootedNode', 'Unknown', 'Rolling back to what ran before', 'RollingBack');
  const seen = (...conditions: (typeof failed)[]) => view({ conditions });
  expect(seen(failed, back)).toMatchObject({
    state: 'degraded',
    what: 'Rolling back to what ran before: etcd is away',
  });
  expect(seen(failed, { ...back, status: 'False' }).what).toBe('etcd is away');
});

test.each([
  ['is paused', pool([], { paused: true }), 'waits: the pool is paused'],
  [
    'has stopped',
    pool([condition('Updating', 'False', '0 of 3 nodes run it; …', 'RolloutStopped')]),
    'waits: the rollout has stopped',
  ],
  [
    'waits for its maintenance window',
    pool([condition('Updating', 'True', '0 of 3 nodes run it; …', 'AwaitingMaintenanceWindow')]),
    'waits: the maintenance window is closed',
  ],
  ['goes on', pool([condition('Updating', 'True', '', 'NodesUpdating')]), 'waits for permission'],
])('a node that has staged its target, in a pool that %s', (_, one, what) => {
  expect(view({ conditions: [prepared], plan }, { pools: [one] }).what).toBe(what);
});

describe('a node that is being drained', () => {
  const cordoned = { nodes: [node('a', { [annotations.cordonedByShale]: 'true' }, true)] };
  const held = { ...cordoned, leases: [lease('shale-operator', '2026-11-20T10:00:00.000000Z')] };

  test('says what its MachineConfigNode reports of the drain', () => {
    const message = "The node is being drained; pod default/web can't be evicted: PodDisruptionBudget web";
    const drained = { ...condition('Drained', 'Unknown', message), lastTransitionTime: LATER };
    expect(view({ conditions: [prepared, drained], plan }, held)).toMatchObject({
      state: 'draining',
      since: LATER,
      what: message,
      cordoned: true,
    });
  });

  test.each([
    ['under the lease of the operator', held, 'is being drained'],
    ['under no lease', cordoned, undefined],
    [
      'in a pool that was paused since',
      { ...held, pools: [pool([], { paused: true })] },
      'the pool is paused',
    ],
  ])('%s, before anything is reported', (_what, more, what) => {
    expect(view({ conditions: [prepared], plan }, more).what).toBe(what);
  });
});

describe('a node with a grant', () => {
  const grant = (config: string) => ({ level: 'Disrupt' as const, config, leaseHolder: 'shale-operator' });
  const at = (name: string, more: object = {}) => {
    const object = machineConfigNode('a', { conditions: [prepared], plan }, { grant: grant(name) });
    return nodeView(object, observed({ machineConfigNodes: [object], nodes: [node('a')], ...more }), NOW);
  };

  test('for its target applies it, since it was drained or taken', () => {
    expect(at('rendered-worker-1')).toMatchObject({
      state: 'applying',
      since: SINCE,
      what: 'permission granted',
    });
    const held = lease('shale-operator', LATER);
    const leases = [{ ...held, spec: { ...held.spec, acquireTime: LATER } }];
    expect(at('rendered-worker-1', { leases }).since).toBe(LATER);
  });

  test('for another target has none', () => {
    expect(at('rendered-worker-0')).toMatchObject({ state: 'staged', what: 'waits for permission' });
  });
});

describe('a node that prepares its target', () => {
  const staging = { conditions: [condition('UpdatePrepared', 'False', 'Staging the target')] };

  test('and is down reports what its daemon reported last, and that it is not Ready', () => {
    const { status: _ready, ...down } = node('a');
    expect(view(staging, { nodes: [down] })).toMatchObject({
      state: 'staging',
      what: 'Staging the target',
      ready: false,
    });
  });

  test('and does not exist any more says what its daemon reported last', () => {
    expect(view(staging, { nodes: [] })).toMatchObject({ state: 'staging', what: 'Staging the target' });
  });
});

describe('the obstacle of a node', () => {
  test.each([
    ['the lease of another', lease('ops', '2026-11-20T10:00:00.000000Z'), 'its lease is held by ops'],
    ['the lease of another that expired', lease('ops', '2026-11-20T09:00:00.000000Z'), undefined],
    ["the operator's own lease", lease('shale-operator', '2026-11-20T10:00:00.000000Z'), undefined],
  ])('%s', (_, held, obstacle) => {
    expect(view({ conditions: [prepared], plan }, { leases: [held] }).obstacle).toBe(obstacle);
  });

  test('a NodeMaintenance', () => {
    const { what, obstacle } = view({ conditions: [prepared], plan }, { inMaintenance: new Set(['a']) });
    expect({ what, obstacle }).toEqual({
      what: 'skipped: a NodeMaintenance is active',
      obstacle: 'a NodeMaintenance is active',
    });
  });
});

test('a reboot on request is no update that the time left is estimated from', () => {
  const of = (requested?: true) => {
    const lastUpdate = {
      config: 'rendered-worker-1',
      actions: [],
      causes: [],
      source: '',
      result: 'Succeeded' as const,
      bootIDBefore: '1',
      bootIDAfter: '2',
      startedAt: LATER,
      finishedAt: LATER,
      ...(requested && { requested }),
    };
    const object = machineConfigNode('a', { lastUpdate });
    return timedNode(nodeView(object, observed({ machineConfigNodes: [object] }), Date.parse(LATER)), object);
  };
  expect(of().last).toBeDefined();
  expect(of(true).last).toBeUndefined();
});
