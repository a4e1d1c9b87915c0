import { describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { readWindows } from '../../api/pool-settings/values.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aState,
  condition,
  heldBy,
  REBOOT,
  RESTART,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation, type ObservationFields } from '../../test/fixtures/pool-observed.ts';
import { aClosedWindow } from '../../test/fixtures/pool-status-inputs.ts';
import { type OptionChanges, someOptions } from '../../test/fixtures/rollout-options.ts';
import { decidePool, lookAgainAfter, type PoolDecision } from './decide-pool.ts';
import { noneSettled, type ObservedNode } from './pool-observation.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

const OLD = 'rendered-worker-1';
const NEW = 'rendered-worker-2';
const TARGET: PoolTarget = { kind: 'standard', target: { config: NEW } };
const NOW = Date.parse('2026-06-01T00:00:00Z');

function observed(
  name: string,
  machineConfigNode: MachineConfigNode | undefined,
  more: Partial<ObservedNode> = {},
) {
  return {
    node: aNode(name),
    machineConfigNode,
    lease: { by: 'nobody' },
    inMaintenance: false,
    machineDeleting: false,
    ...more,
  } as const satisfies ObservedNode;
}

/** A node of the target whose daemon reported this. */
function onTarget(
  name: string,
  status: NonNullable<MachineConfigNode['status']>,
  more: Partial<ObservedNode> = {},
) {
  const desired = { configVersion: { desired: NEW } };
  return observed(name, aMachineConfigNode(name, desired, { mode: 'Standard', ...status }), more);
}

const updated = (name: string, more: Partial<ObservedNode> = {}) =>
  onTarget(name, { configVersion: { current: NEW, desired: NEW }, conditions: [condition('Updated')] }, more);
const staged = (name: string, actions = REBOOT, more: Partial<ObservedNode> = {}) =>
  onTarget(
    name,
    { plan: { config: NEW, staged: true, actions: [...actions], causes: [], source: 'x' } },
    more,
  );
const failed = (name: string, atMs = 0, more: Partial<ObservedNode> = {}) => {
  const degraded = { ...condition('NodeDegraded'), lastTransitionTime: new Date(atMs).toISOString() };
  return onTarget(name, { conditions: [degraded] }, more);
};
const notReady = (name: string) => aNode(name, { status: { conditions: [condition('Ready', 'False')] } });
const cordoned = (name: string) => aNode(name, { spec: { unschedulable: true } });

interface Case {
  readonly options?: OptionChanges;
  readonly settings?: Partial<PoolSettings>;
  readonly spec?: Parameters<typeof aPool>[1];
  readonly observation?: ObservationFields;
}

function decide(nodes: readonly ObservedNode[], { options, settings, spec, observation }: Case = {}) {
  return decidePool(
    anObservation({
      pool: aPool('worker', spec),
      settings: someSettings(settings),
      target: TARGET,
      nodes,
      ...observation,
    }),
    someOptions(options),
    NOW,
  );
}

const stepsOf = ({ steps }: PoolDecision) => [...steps].map(([name, { kind }]) => `${kind} ${name}`);

describe('steps', () => {
  it.each([
    ['just within', 899, 'keep-lease a'],
    ['at the end of', 900, 'let-go a'],
  ])('a failed node is given up %s the operator’s patience', (_what, seconds, step) => {
    const node = failed('a', NOW - seconds * 1000, { lease: { by: 'us' } });
    const failureThreshold = { unproven: 2, proven: 2 };
    expect(stepsOf(decide([node], { settings: { failureThreshold } }))).toEqual([step]);
  });

  it('no node starts before its image exists', () => {
    const target: PoolTarget = {
      kind: 'awaiting-image',
      config: NEW,
      state: 'Building',
      why: 'x',
      initialTarget: { config: NEW },
    };
    expect(stepsOf(decide([staged('a')]))).toEqual(['take a']);
    expect(stepsOf(decide([staged('a')], { observation: { target } }))).toEqual([]);
  });

  it.each<[string, Case]>([
    ['in a paused pool', { spec: { paused: true } }],
    ['in a paused pool that stages ahead', { spec: { paused: true }, settings: { prefetch: true } }],
    ['in a pool whose settings close it', { settings: { closed: 'x' } }],
    ['while nodes are not managed', { settings: { suspended: 'x' } }],
  ])('no node starts %s', (_what, given) => {
    expect(stepsOf(decide([staged('a')], given))).toEqual([]);
  });

  it('the node that the operator runs on comes last', () => {
    const nodes = [staged('a'), staged('b')];
    expect(stepsOf(decide(nodes, { options: { pace: { operatorNode: 'a' } } }))).toEqual(['take b']);
    expect(stepsOf(decide(nodes))).toEqual(['take a']);
  });
});

describe('nodes that need no attention', () => {
  const names = (decision: PoolDecision) => decision.newlySettled.map(({ name }) => name);

  it('are those that run the target and serve', () => {
    expect(names(decide([updated('a'), staged('b'), updated('c', { node: notReady('c') })]))).toEqual(['a']);
  });

  it('are none whose MachineConfigNode is about to be changed', () => {
    expect(names(decide([updated('a')], { settings: { softReboot: true } }))).toEqual([]);
    expect(names(decide([updated('a')], { observation: { policyDigest: 'sha256:p' } }))).toEqual([]);
  });
});

describe('unavailable nodes', () => {
  it('are those that the rollout did not take, with the reason, new ones first', () => {
    const off = { metadata: { name: 'off', annotations: { [annotations.poweredOff]: '{}' } } };
    const { status } = notReady('off');
    const decision = decide([
      observed('new-1', undefined, { node: notReady('new-1') }),
      observed('new-2', undefined, { node: cordoned('new-2') }),
      observed('new-3', undefined),
      observed('new-off', undefined, { node: aNode('off', { ...off, ...(status && { status }) }) }),
      updated('a'),
      updated('b', { node: cordoned('b') }),
    ]);
    expect(decision.unavailable).toEqual([
      {
        name: 'new-1',
        why: 'new and not Ready',
        remedy: 'look at its kubelet: kubectl describe node new-1',
      },
      { name: 'new-2', why: 'new and cordoned', remedy: 'kubectl uncordon new-2' },
      { name: 'b', why: 'cordoned, and not by Shale', remedy: 'kubectl uncordon b' },
    ]);
  });

  it('may use up maxUnavailable', () => {
    const nodes = [staged('a'), updated('b', { node: cordoned('b') })];
    expect(decide(nodes)).toMatchObject({ slotsTaken: true });
    expect(decide(nodes, { spec: { maxUnavailable: 2 } })).toMatchObject({ slotsTaken: false });
  });

  it('of a percentage count all nodes of the pool, the settled ones too', () => {
    const nodes = ['a', 'b', 'c'].map((name) => staged(name));
    const settled = { ...noneSettled, nodes: 17 };
    const decision = decide(nodes, { spec: { maxUnavailable: '10%' }, observation: { settled } });
    expect(stepsOf(decision)).toEqual(['take a', 'take b']);
  });
});

describe('a rollout that has stopped', () => {
  it('names the failed nodes in order', () => {
    expect(decide([failed('c'), failed('a'), updated('b')]).halted).toBe(
      'the rollout has stopped: 2 nodes failed and the threshold is 2: a, c',
    );
  });

  it.each<[string, ObservedNode]>([
    ['has another target to go to first', { ...failed('a'), machineConfigNode: aMachineConfigNode('a') }],
    ['is being deleted', failed('a', 0, { machineDeleting: true })],
  ])('is not stopped by a failed node that %s', (_what, node) => {
    expect(decide([node], { spec: { paused: true } }).halted).toBeUndefined();
  });

  const lastGood = () => ({ config: OLD });
  const auto = { settings: { autoRollback: true }, observation: { lastGood } };
  const held: PoolTarget = {
    kind: 'rolled-back',
    target: { config: NEW },
    sameContent: new Set(),
    why: '',
    ownTarget: TARGET,
  };
  it('starts nothing while a label of the held image is to come by which nodes do not reboot', () => {
    const target = { ...held, target: { config: OLD }, awaits: { why: 'x', until: NOW + 1 } };
    const decision = decide([staged('a'), updated('b')], { observation: { target } });
    expect([...decision.assign.values()].map(({ target: { config } }) => config)).toEqual([NEW, NEW]);
    expect(decision.steps.size).toBe(0);
  });

  it('rolls back where the pool says so', () => {
    expect(decide([failed('a')], auto).rollbackTo).toEqual({ config: OLD });
  });

  it.each<[string, Case]>([
    ['the pool does not say so', { observation: { lastGood } }],
    ['the pool is paused', { ...auto, spec: { paused: true } }],
    ['a setting closes the pool', { ...auto, settings: { autoRollback: true, closed: 'x' } }],
    ['nodes are not managed', { ...auto, settings: { autoRollback: true, suspended: 'x' } }],
    [
      'a rollback was requested already',
      {
        ...auto,
        settings: { autoRollback: true, rollback: { config: OLD, by: '', reason: '', at: '' } },
      },
    ],
    ['it is at the target of a rollback', { ...auto, observation: { lastGood, target: held } }],
    ['nothing is known to have worked', { settings: { autoRollback: true } }],
  ])('does not roll back where %s', (_what, given) => {
    expect(decide([failed('a')], given).rollbackTo).toBeUndefined();
  });

  it('does not roll back while it goes on', () => {
    expect(decide([staged('a')], auto).rollbackTo).toBeUndefined();
  });
});

describe('maintenance windows', () => {
  const later = readWindows([{ schedule: '20 0 * * *', duration: '1h' }]);
  const windows = { settings: { maintenanceWindows: later } };

  it('are waited for only where a node could start', () => {
    expect(decide([updated('a')], windows).awaitsWindow).toBeUndefined();
    expect(decide([staged('a')], windows).awaitsWindow).toMatchObject({ until: NOW + 20 * 60_000 });
  });

  it('are still waited for by nodes that need a drain where live updates are not', () => {
    const both = { settings: { maintenanceWindows: later, liveOutsideWindows: true } };
    const decision = decide([staged('a'), staged('b', RESTART)], both);
    expect(stepsOf(decision)).toEqual(['take b']);
    expect(decision.awaitsWindow).toMatchObject({ until: NOW + 20 * 60_000 });
    expect(decide([staged('b', RESTART)], both).awaitsWindow).toBeUndefined();
  });
});

describe('when to look again', () => {
  const empty = { ...decide([]), at: NOW };
  const MINUTE = 60_000;
  const look = (decision: Partial<PoolDecision>, settings: Partial<PoolSettings> = {}) =>
    lookAgainAfter(
      { ...empty, ...decision },
      someSettings({ soak: 5_000, unhealthyAfter: 600_000, ...settings }),
      {
        seconds: 300,
      },
    );
  /** @param hadRun ms for which its update had held by then. */
  const down = (sinceMs: number, hadRun = 500) =>
    aState('a', {
      ready: false,
      notReadySince: NOW + sinceMs,
      progress: { kind: 'updated', startedAt: NOW + sinceMs - 10_000, since: NOW + sinceMs - hadRun },
    });

  it.each<[string, Partial<PoolDecision>, number | undefined]>([
    ['nothing is under way', { states: [aState('a')] }, undefined],
    ['a node is at work', { states: [aState('a'), aState('b', { lease: { by: 'us' } })] }, 100_000],
    ['a node was skipped', { skipped: [{ name: 'a', ...heldBy('x') }] }, 30_000],
    ['others use up maxUnavailable', { slotsTaken: true }, 30_000],
    ['a window opens', { awaitsWindow: aClosedWindow(NOW + 20 * MINUTE) }, 20 * MINUTE],
    ['a window opens tomorrow', { awaitsWindow: aClosedWindow(NOW + 24 * 60 * MINUTE) }, 60 * MINUTE],
    ['no window ever opens', { awaitsWindow: aClosedWindow() }, undefined],
    [
      'an update has to hold for a moment more',
      { states: [aState('a', { progress: { kind: 'updated', since: NOW - 3_000 } })] },
      2_000,
    ],
    [
      'an update has held',
      { states: [aState('a', { progress: { kind: 'updated', since: NOW - 5_000 } })] },
      undefined,
    ],
    [
      'a node is not updated yet',
      { states: [aState('a', { progress: { kind: 'staged', actions: REBOOT } })] },
      undefined,
    ],
    [
      'a node is down, after its update had held',
      {
        states: [down(-60_000, 5_000)],
      },
      540_000,
    ],
    ['a node has been down for too long', { states: [down(-600_000)] }, undefined],
    [
      'several of these: at the earliest',
      { skipped: [{ name: 'a', ...heldBy('x') }], awaitsWindow: aClosedWindow(NOW + 1_000) },
      1_000,
    ],
  ])('%s', (_what, decision, expected) => {
    expect(look(decision)).toBe(expected);
  });
});
