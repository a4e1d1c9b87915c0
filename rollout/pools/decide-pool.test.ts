import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { readWindows } from '../../api/pool-settings/values.ts';
import { type SimulationScenario, simulate } from '../../test/fixtures/fleet/simulation.ts';
import {
  aMachineConfigNode,
  aNode,
  condition,
  REBOOT,
  RESTART,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { decide, observed, running } from '../../test/fixtures/pool-decided.ts';
import { defaultRolloutOptions } from '../options.ts';
import { lookAgainAfter } from './decide-pool.ts';
import type { ObservedNode } from './pool-observation.ts';
import type { PoolSettings } from './pool-settings.ts';

describe('targets', () => {
  it('are given to all nodes at once, for staging disrupts nothing', () => {
    const { assign, steps } = decide([observed('a'), observed('b'), observed('c')]);
    expect([...assign.values()].map(({ target }) => target.config)).toEqual(
      Array(3).fill('rendered-worker-2'),
    );
    expect(steps.size).toBe(0);
  });

  it('are given to no more nodes than may stage at once', () => {
    const { assign } = decide(
      [observed('a'), observed('b'), observed('c')],
      {},
      { pace: { stagingLimit: 2 } },
    );
    expect([...assign.values()].map(({ target }) => target.config)).toEqual([
      'rendered-worker-2',
      'rendered-worker-2',
      'rendered-worker-1',
    ]);
  });

  it('are not given in a paused pool', () => {
    const { assign, states } = decide([observed('a')], { paused: true });
    expect(assign.get('a')?.target.config).toBe('rendered-worker-1');
    expect(states[0]?.update).toMatchObject({ assigned: false, progress: { kind: 'updated' } });
  });

  it('come with a MachineConfigNode where there is none', () => {
    const { create } = decide([observed('new', { machineConfigNode: undefined })]);
    expect(create.map(({ spec }) => spec)).toEqual([
      {
        node: { name: 'new' },
        pool: { name: 'worker' },
        configVersion: { desired: 'rendered-worker-2' },
        policyDigest: 'sha256:p',
      },
    ]);
  });
});

it('a node that is down before it has a MachineConfigNode takes its share of maxUnavailable', () => {
  const plan = { config: 'rendered-worker-2', staged: true, actions: [...REBOOT], causes: [], source: 'x' };
  const desired = { configVersion: { desired: 'rendered-worker-2' } };
  const staged = observed('a', { machineConfigNode: aMachineConfigNode('a', desired, { plan }) });
  const unassigned = (ready: 'True' | 'False') =>
    observed('new', {
      node: aNode('new', { status: { conditions: [condition('Ready', ready)] } }),
      machineConfigNode: undefined,
    });
  expect(decide([staged, unassigned('False')]).steps.size).toBe(0);
  expect(decide([staged, unassigned('True')]).steps.size).toBe(1);
});

describe('a node that has to hold for a while', () => {
  const soaking = (sinceMs: number) => {
    const times = {
      startedAt: new Date(sinceMs - 1000).toISOString(),
      finishedAt: new Date(sinceMs).toISOString(),
    };
    const lastUpdate: UpdateRecord = {
      config: 'rendered-worker-2',
      actions: [...RESTART],
      causes: [],
      source: '',
      ...times,
      bootIDBefore: '',
      bootIDAfter: '',
      result: 'Succeeded',
    };
    return observed('a', {
      machineConfigNode: {
        ...running('a', 'rendered-worker-2', { lastUpdate }),
        spec: aMachineConfigNode('a', { configVersion: { desired: 'rendered-worker-2' } }).spec,
      },
    });
  };

  // The clock goes on between a decision and the question; a node that proved itself in between made the rollout stand
  // still.
  it.each([
    [-1, 2_999],
    [-2_999, 1],
    [-3_000, undefined],
  ])('updated %i ms ago is looked at again after %s ms', (since, wait) => {
    const decision = decide([soaking(since)], {}, {}, { soak: 3_000 });
    expect(lookAgainAfter(decision, someSettings({ soak: 3_000 }), { seconds: 300 })).toBe(wait);
  });
});

it('looks again in time to renew its leases, and not at all when nothing is under way', () => {
  const wait = (nodes: readonly ObservedNode[]) =>
    lookAgainAfter(decide(nodes), someSettings(), { seconds: 300 });
  expect(wait([observed('a')])).toBeUndefined();
  expect(wait([observed('a', { lease: { by: 'us' } })])).toBe(100_000);
});

it.each<[string, Partial<ObservedNode>, number | undefined]>([
  ['whose Machine is being deleted', { machineDeleting: true }, 30_000],
  ['in maintenance', { inMaintenance: true }, 30_000],
  ['whose lease another holds, and may let run out', { lease: { by: 'other', holder: 'nhc' } }, 30_000],
  [
    'flagged until a time',
    {
      node: aNode('a', {
        metadata: {
          name: 'a',
          annotations: { [annotations.plannedMaintenance]: '{"until":"2999-01-01T00:00:00Z"}' },
        },
      }),
    },
    30_000,
  ],
  [
    'that is cordoned, whose end is an event',
    { node: aNode('a', { spec: { unschedulable: true } }) },
    undefined,
  ],
])(
  'looks again at a node %s, though it runs its target: nothing may tell that it is given back',
  (_, more, wait) => {
    const target = 'rendered-worker-2';
    const machineConfigNode = aMachineConfigNode(
      'a',
      { configVersion: { desired: target } },
      { configVersion: { current: target, desired: target }, conditions: [condition('Updated')] },
    );
    const decision = decide([observed('a', { machineConfigNode, ...more })]);
    expect(lookAgainAfter(decision, someSettings(), defaultRolloutOptions.leases)).toBe(wait);
  },
);

describe('outside of the maintenance windows', () => {
  // The windows below are asked at the epoch, a Thursday, 0:00 in UTC.
  const later = readWindows([{ schedule: '20 0 * * *', duration: '1h' }]);
  const staged = (name: string, actions: typeof REBOOT, more: Partial<ObservedNode> = {}) =>
    observed(name, {
      machineConfigNode: aMachineConfigNode(
        name,
        { configVersion: { desired: 'rendered-worker-2' } },
        {
          plan: { config: 'rendered-worker-2', staged: true, actions: [...actions], causes: [], source: 'x' },
        },
      ),
      ...more,
    });
  const begun = (nodes: readonly ObservedNode[], settings: Partial<PoolSettings>) => {
    const decision = decide(nodes, {}, {}, settings);
    return { decision, steps: [...decision.steps].map(([name, { kind }]) => `${kind} ${name}`) };
  };

  it('nodes stage and nothing more, until the next window opens', () => {
    const { steps, decision } = begun([staged('a', REBOOT), staged('b', RESTART)], {
      maintenanceWindows: later,
    });
    expect(steps).toEqual([]);
    expect(decision.awaitsWindow).toMatchObject({ until: 1_200_000 });
    expect(lookAgainAfter(decision, someSettings(), { seconds: 1 })).toBe(1_200_000);
  });

  it('live updates begin where the pool lets them', () => {
    const settings = { maintenanceWindows: later, liveOutsideWindows: true };
    const { steps, decision } = begun([staged('a', REBOOT), staged('b', RESTART)], settings);
    expect(steps).toEqual(['take b']);
    expect(decision.awaitsWindow).toBeDefined();
  });

  it('what has begun ends', () => {
    const mark = { metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } } };
    const drained = staged('a', REBOOT, { node: aNode('a', { ...mark, spec: { unschedulable: true } }) });
    expect(begun([drained], { maintenanceWindows: later }).steps).toEqual(['take a']);
    expect(begun([{ ...drained, lease: { by: 'us' } }], { maintenanceWindows: later }).steps).toEqual([
      'drain a',
    ]);
  });

  it('inside of one, nothing is different', () => {
    const now = readWindows([{ schedule: '30 23 * * *', duration: '1h' }]);
    const { steps, decision } = begun([staged('a', REBOOT)], { maintenanceWindows: now });
    expect(steps).toEqual(['take a']);
    expect(decision.awaitsWindow).toBeUndefined();
  });
});

describe('a whole rollout, whatever happens on the way', () => {
  const anyScenario: fc.Arbitrary<SimulationScenario> = fc.record({
    nodes: fc.integer({ min: 1, max: 8 }),
    maxUnavailable: fc.integer({ min: 1, max: 4 }),
    perRack: fc.constantFrom(undefined, 1, 2),
    plans: fc.array(fc.constantFrom('Reboot', 'Drain', 'Live'), { minLength: 8, maxLength: 8 }),
    /** Between two reconciles; the simulation continues without events when they are used up. */
    events: fc.array(
      fc.record({
        node: fc.nat(7),
        what: fc.constantFrom(
          'nothing',
          'daemon',
          'daemon',
          'daemon',
          'steal-lease',
          'return-lease',
          'expire-lease',
          'not-ready',
          'ready',
          'pause',
          'unpause',
          'kill-operator',
          'new-target',
        ),
      }),
      { maxLength: 60 },
    ),
  });

  it('ends with every node updated, uncordoned and free, and never disrupts more than it may', () => {
    fc.assert(
      fc.property(anyScenario, (scenario) => {
        const end = simulate(scenario);
        expect(end.violations).toEqual([]);
        expect(end.unfinished).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

it('a new node that waits for another pool says so', () => {
  const plan = { config: 'rendered-worker-2', staged: true, actions: [...REBOOT], causes: [], source: 'x' };
  const desired = { configVersion: { desired: 'rendered-worker-2' } };
  const taints = [{ key: 'shale.dev/not-configured', effect: 'NoSchedule' }];
  const fresh = observed('new', {
    node: aNode('new', { spec: { taints } }),
    machineConfigNode: aMachineConfigNode('new', desired, { plan }),
  });
  const wait = { reason: 'AwaitingPools', message: 'pool canary is not Updated' } as const;
  const held = decide([fresh], {}, {}, { dependsOn: ['canary'] }, { awaitedPools: () => wait });
  expect([held.steps.size, held.startup.waiting[0]?.why]).toEqual([0, 'pool canary is not Updated']);
});
