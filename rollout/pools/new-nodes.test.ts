import { describe, expect, it } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { readWindows } from '../../api/pool-settings/values.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aState,
  condition,
  image,
  REBOOT,
  type StateFields,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation, type ObservationFields } from '../../test/fixtures/pool-observed.ts';
import { defaultRolloutOptions } from '../options.ts';
import { chooseNodes } from './choose-nodes.ts';
import { decidePool, lookAgainAfter } from './decide-pool.ts';
import { newNodesVerdict, overdueNodes, type WaitingNode } from './new-nodes.ts';
import type { NodeState } from './node-state.ts';
import type { ObservedNode } from './pool-observation.ts';
import type { PoolTarget } from './pool-target.ts';

const REGISTERED = '2026-06-01T00:00:00Z';
const NOW = Date.parse(REGISTERED) + 60_000;
const OLD = 'rendered-worker-1';
const NEW = 'rendered-worker-2';
const NEXT: PoolTarget = { kind: 'standard', target: { config: NEW } };
const TAINT = { key: STARTUP_TAINTS[0], effect: 'NoSchedule' };

function tainted(name: string, more: Partial<Pick<Node, 'spec' | 'status'>> = {}, labels = {}): Node {
  const metadata = { name, uid: `uid-${name}`, creationTimestamp: REGISTERED, labels };
  return aNode(name, { metadata, spec: { taints: [TAINT] }, ...more });
}

const observed = (node: Node, machineConfigNode: MachineConfigNode | undefined): ObservedNode => ({
  node,
  machineConfigNode,
  lease: { by: 'nobody' },
  inMaintenance: false,
  machineDeleting: false,
});

/** A node whose target is staged and requires a reboot. */
const staged = (node: Node) =>
  observed(
    node,
    aMachineConfigNode(
      node.metadata.name,
      { configVersion: { desired: NEW } },
      {
        configVersion: { current: OLD, desired: NEW },
        mode: 'Standard',
        plan: { config: NEW, actions: [...REBOOT], causes: [], source: 'Computed', staged: true },
        conditions: [condition('Updated', 'False'), condition('UpdatePrepared')],
      },
    ),
  );

const updated = (node: Node, config = NEW) =>
  observed(
    node,
    aMachineConfigNode(
      node.metadata.name,
      { configVersion: { desired: config } },
      {
        configVersion: { current: config, desired: config },
        mode: 'Standard',
        conditions: [condition('Updated')],
      },
    ),
  );

const decide = (nodes: readonly ObservedNode[], seen: ObservationFields = {}, now = NOW) =>
  decidePool(anObservation({ target: NEXT, nodes, ...seen }), defaultRolloutOptions, now);

const CLOSED = someSettings({
  maintenanceWindows: readWindows([{ schedule: '0 3 1 1 *', duration: '1h' }]),
});
const taken = (decision: ReturnType<typeof decide>) => [...decision.steps.keys()];
const down = { status: { conditions: [condition('Ready', 'False')] } };

describe('a new node', () => {
  it('is updated outside of maintenance windows', () => {
    const decision = decide([staged(tainted('new')), staged(aNode('old'))], { settings: CLOSED });
    expect(taken(decision)).toEqual(['new']);
    expect(decision.awaitsWindow).toBeDefined();
  });

  it('takes none of maxUnavailable, whether it is updated, down, failed or without a MachineConfigNode', () => {
    const failed = staged(tainted('failed'));
    const status = {
      ...failed.machineConfigNode?.status,
      conditions: [condition('NodeDegraded', 'True', 'no')],
    };
    const nodes = [
      staged(aNode('old')),
      staged(tainted('new', down)),
      observed(tainted('unknown', { spec: { taints: [TAINT], unschedulable: true } }), undefined),
      {
        ...failed,
        machineConfigNode: { ...aMachineConfigNode('failed', { configVersion: { desired: OLD } }, status) },
      },
      updated(aNode('proof')),
    ];
    const decision = decide(nodes);
    expect(taken(decision).sort()).toEqual(['new', 'old']);
    expect(decision.unavailable).toEqual([]);
  });

  it('adds nothing to a percentage', () => {
    const serving = ['a', 'b', 'c', 'd'].map((name) => staged(aNode(name)));
    const fresh = ['w', 'x', 'y', 'z'].map((name) => updated(tainted(name), OLD));
    const pool = aPool('worker', { maxUnavailable: '25%' });
    expect(taken(decide([...serving, ...fresh], { pool }))).toEqual(['a']);
  });

  it.each([
    ['a paused pool', { pool: aPool('worker', { paused: true }) }, 'the pool is paused'],
    [
      'a closed pool',
      { settings: someSettings({ closed: 'the annotation is wrong' }) },
      'the annotation is wrong',
    ],
  ])('is not updated in %s, and says so', (_what, seen, why) => {
    const decision = decide([staged(tainted('new'))], seen);
    expect(taken(decision)).toEqual([]);
    expect(decision.startup).toMatchObject({ admit: [], waiting: [{ name: 'new', why }] });
  });

  it('is not updated by a rollout that has stopped, and says so', () => {
    const failed = staged(aNode('failed'));
    const status = {
      ...failed.machineConfigNode?.status,
      conditions: [condition('NodeDegraded', 'True', 'no space')],
    };
    const broken = observed(
      aNode('failed'),
      aMachineConfigNode('failed', { configVersion: { desired: NEW } }, status),
    );
    const decision = decide([staged(tainted('new')), broken]);
    expect(taken(decision)).toEqual([]);
    expect(decision.startup.waiting[0]?.why).toMatch(/^the rollout has stopped: 1 node failed/);
  });

  it('is one no more once pods ran on it, and on the control plane never was', () => {
    const again = tainted('again');
    const served = {
      ...again,
      metadata: { ...again.metadata, annotations: { [annotations.inService]: 'true' } },
    };
    const control = tainted('control', {}, { 'node-role.kubernetes.io/control-plane': '' });
    const decision = decide([staged(served), staged(control)], { settings: CLOSED });
    expect(taken(decision)).toEqual([]);
    expect(decision.startup.waiting.map(({ name }) => name)).toEqual(['again', 'control']);
  });
});

describe('new nodes of a target', () => {
  const fresh = { startup: { isNew: true } };
  const waits = (name: string, more: StateFields = {}) =>
    aState(name, { ...fresh, progress: { kind: 'staged', actions: REBOOT }, ...more });
  const busy = { schedulable: false, work: { cordon: { uncordon: true }, grant: 'Disrupt' as const } };
  const limits = { maxUnavailable: 1, soak: 0, unhealthyAfter: 600_000, now: NOW };
  const begun = (states: readonly NodeState[]) => chooseNodes(states, limits).begin.map(({ name }) => name);

  it.each<[string, readonly NodeState[], readonly string[]]>([
    ['that no node has proven go one at a time', [waits('a'), waits('b')], ['a']],
    ['wait for their canary', [waits('a', { ...busy, lease: { by: 'us' } }), waits('b')], []],
    ['go together once it is proven', [aState('proof'), waits('a'), waits('b')], ['a', 'b']],
    [
      'go together beside a node in service',
      [aState('proof'), waits('a'), waits('b'), waits('c', { startup: { isNew: false } })],
      ['a', 'b', 'c'],
    ],
    [
      'begin again with the one that lost its lease',
      [waits('b'), waits('c', { ...busy, work: { cordon: { uncordon: true }, grant: undefined } })],
      ['c'],
    ],
  ])('%s', (_what, states, expected) => {
    expect(begun(states)).toEqual(expected);
  });
});

describe('the startup taint', () => {
  const awaiting = (initialTarget: { config: string; image?: string }): PoolTarget => ({
    kind: 'awaiting-image',
    config: NEW,
    state: 'Building',
    why: 'the build runs',
    initialTarget,
  });

  it('is removed from a node that runs the target and is Ready', () => {
    expect(decide([updated(tainted('new')), updated(aNode('old'))]).startup).toEqual({
      admit: ['new'],
      waiting: [],
    });
  });

  it('stays on a node that is not Ready', () => {
    const { startup } = decide([updated(tainted('new', down))]);
    expect(startup).toMatchObject({ admit: [], waiting: [{ why: 'it runs its target and is not Ready' }] });
  });

  it('is removed in a paused pool as well', () => {
    const pool = aPool('worker', { paused: true });
    expect(decide([updated(tainted('new'))], { pool }).startup.admit).toEqual(['new']);
  });

  it('is removed while an image is built, if the node runs what the others run', () => {
    const target = { config: OLD, image: image('1') };
    const layered = observed(
      tainted('new'),
      aMachineConfigNode(
        'new',
        { configVersion: { desired: OLD }, configImage: { desiredImage: image('1') } },
        {
          configVersion: { current: OLD, desired: OLD },
          configImage: { currentImage: image('1') },
          mode: 'Layered',
          conditions: [condition('Updated')],
        },
      ),
    );
    expect(decide([layered], { target: awaiting(target) }).startup.admit).toEqual(['new']);
    const other = decide([layered], { target: awaiting({ config: OLD, image: image('2') }) }).startup;
    expect(other.admit).toEqual([]);
  });

  it('stays until the pool has its first image', () => {
    const { startup } = decide([updated(tainted('new'), OLD)], { target: awaiting({ config: OLD }) });
    expect(startup).toMatchObject({
      admit: [],
      waiting: [{ name: 'new', why: 'the pool has no image yet: the build runs' }],
    });
  });

  it('is told of a node without a MachineConfigNode, with what the pool lacks', () => {
    const target: PoolTarget = { kind: 'none', why: 'no configuration is rendered yet' };
    const { startup } = decide([observed(tainted('new'), undefined)], { target });
    expect(startup.waiting).toMatchObject([{ name: 'new', why: 'no configuration is rendered yet' }]);
  });

  it('is told of a node without a MachineConfigNode, where the pool lacks nothing', () => {
    const { startup } = decide([observed(tainted('new'), undefined)]);
    expect(startup.waiting).toMatchObject([{ name: 'new', why: 'it has no MachineConfigNode yet' }]);
  });

  it('is no matter of a node that is being deleted', () => {
    const leaving = { ...updated(tainted('new', down)), machineDeleting: true };
    expect(decide([leaving]).startup).toEqual({ admit: [], waiting: [] });
  });
});

describe('a new node that takes too long', () => {
  const overdueAt = Date.parse(REGISTERED) + defaultRolloutOptions.reports.newNodeAfterSeconds * 1000;
  const paused = { pool: aPool('worker', { paused: true }) };

  it('is overdue at its deadline, when the pool is looked at again', () => {
    const decision = decide([staged(tainted('new'))], paused, overdueAt - 1_000);
    expect(overdueNodes(decision.startup, overdueAt - 1_000)).toEqual([]);
    expect(lookAgainAfter(decision, someSettings(), defaultRolloutOptions.leases)).toBe(1_000);
    expect(overdueNodes(decision.startup, overdueAt)).toHaveLength(1);
  });

  const waiting = (count: number): WaitingNode[] =>
    Array.from({ length: count }, (_, index) => ({ name: `n${index}`, why: 'staging', overdueAt }));

  it.each([
    ['none', 0, NOW, undefined],
    [
      'one',
      1,
      NOW,
      { status: 'True', reason: 'BeingConfigured', message: '1 new node takes no pods yet; n0: staging' },
    ],
    [
      'two that are overdue',
      2,
      overdueAt,
      {
        status: 'True',
        reason: 'Overdue',
        message: '2 new nodes take no pods yet; n0: staging; n1: staging',
      },
    ],
    [
      'many',
      12,
      NOW,
      {
        status: 'True',
        reason: 'BeingConfigured',
        message: expect.stringMatching(/n9: staging; and 2 more$/),
      },
    ],
  ])('is in the condition: %s', (_what, count, now, expected) => {
    expect(newNodesVerdict({ admit: [], waiting: waiting(count) }, now)).toEqual(expected);
  });
});
