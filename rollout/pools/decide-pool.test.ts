import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineConfigNode, UpdateRecord } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { simulate, type Weather } from '../../test/fixtures/fleet/simulation.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  condition,
  image,
  REBOOT,
  RESTART,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions, type RolloutOptions } from '../options.ts';
import { decidePool, lookAgainAfter } from './decide-pool.ts';
import { parseWindows } from './maintenance-windows.ts';
import type { ObservedNode, PoolObservation } from './pool-observation.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

const NEXT: PoolTarget = { kind: 'standard', target: { config: 'rendered-worker-2' } };
const observed = (name: string, more: Partial<ObservedNode> = {}): ObservedNode => ({
  node: aNode(name),
  machineConfigNode: running(name, 'rendered-worker-1'),
  lease: { by: 'nobody' },
  inMaintenance: false,
  machineDeleting: false,
  ...more,
});
const running = (name: string, config: string, status: MachineConfigNode['status'] = {}) =>
  aMachineConfigNode(
    name,
    {},
    {
      configVersion: { current: config, desired: config },
      mode: 'Standard',
      conditions: [condition('Updated')],
      ...status,
    },
  );
const decide = (
  nodes: readonly ObservedNode[],
  spec = {},
  options: Partial<RolloutOptions> = {},
  settings: Partial<PoolSettings> = {},
  seen: Partial<PoolObservation> = {},
) =>
  decidePool(
    {
      pool: aPool('worker', spec),
      settings: someSettings(settings),
      target: NEXT,
      policyDigest: 'sha256:p',
      imageSigningKeys: 'sha256:k',
      whyIrreconcilable: () => undefined,
      nodes,
      ...seen,
    },
    { ...defaultRolloutOptions, ...options },
    0,
  );

describe('targets', () => {
  it('are given to all nodes at once, for staging disrupts nothing', () => {
    const { assign, steps } = decide([observed('a'), observed('b'), observed('c')]);
    expect([...assign.values()].map(({ target }) => target.config)).toEqual(
      Array(3).fill('rendered-worker-2'),
    );
    expect(steps.size).toBe(0);
  });

  it('are given to no more nodes than may stage at once', () => {
    const { assign } = decide([observed('a'), observed('b'), observed('c')], {}, { stagingLimit: 2 });
    expect([...assign.values()].map(({ target }) => target.config)).toEqual([
      'rendered-worker-2',
      'rendered-worker-2',
      'rendered-worker-1',
    ]);
  });

  it('are not given in a paused pool', () => {
    const { assign, states } = decide([observed('a')], { paused: true });
    expect(assign.get('a')?.target.config).toBe('rendered-worker-1');
    expect(states[0]).toMatchObject({ assigned: false, progress: { kind: 'updated' } });
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
  const newcomer = (ready: 'True' | 'False') =>
    observed('new', {
      node: aNode('new', { status: { conditions: [condition('Ready', ready)] } }),
      machineConfigNode: undefined,
    });
  expect(decide([staged, newcomer('False')]).steps.size).toBe(0);
  expect(decide([staged, newcomer('True')]).steps.size).toBe(1);
});

describe('a failed node', () => {
  const failed = (name: string) =>
    observed(name, {
      machineConfigNode: aMachineConfigNode(
        name,
        { configVersion: { desired: 'rendered-worker-2' } },
        { conditions: [condition('NodeDegraded', 'True', 'no space left')] },
      ),
    });
  const updated = (name: string) =>
    observed(name, {
      machineConfigNode: {
        ...running(name, 'rendered-worker-2'),
        spec: { ...running(name, '').spec, configVersion: { desired: 'rendered-worker-2' } },
      },
    });

  it('stops the rollout when it is the first to try', () => {
    expect(decide([failed('a'), observed('b')]).halted).toMatch(/1 node failed and the threshold is 1: a/);
  });

  it('rolls the pool back once, if the pool enables it and a former target is known', () => {
    const lastGood = { config: 'rendered-worker-1' };
    const goesBack = (settings: Partial<PoolSettings>, seen: Partial<PoolObservation> = {}, spec = {}) =>
      decide([failed('a'), observed('b')], spec, {}, settings, { lastGood: () => lastGood, ...seen })
        .rollbackTo;
    expect(goesBack({ autoRollback: true })).toEqual(lastGood);
    expect(goesBack({ autoRollback: false })).toBeUndefined();
    expect(goesBack({ autoRollback: true }, {}, { paused: true })).toBeUndefined();
    const held: PoolTarget = {
      kind: 'held',
      target: { config: 'rendered-worker-2' },
      sameContent: new Set(),
      why: '',
      ownTarget: NEXT,
    };
    expect(goesBack({ autoRollback: true }, { target: held })).toBeUndefined();
  });

  it('of a pool’s first image takes it nowhere, and says how it can be left', () => {
    const target: PoolTarget = {
      kind: 'layered',
      target: { config: 'rendered-worker-2', image: image('1') },
      build: 'worker-1',
      sameContent: new Set([image('1')]),
    };
    const { spec, status } = failed('a').machineConfigNode ?? {};
    const machineConfigNode = aMachineConfigNode(
      'a',
      { ...spec, configImage: { desiredImage: image('1') } },
      status,
    );
    const nodes = [observed('a', { machineConfigNode }), observed('b')];
    const decision = decide(nodes, {}, {}, { autoRollback: true }, { target });
    expect(decision.rollbackTo).toBeUndefined();
    expect(decision.halted).toMatch(/: a; it is not rolled back.*; shale disable --pool worker switches/);
  });

  it('alone does not when others have taken the target', () => {
    expect(decide([failed('a'), updated('b')]).halted).toBeUndefined();
    expect(decide([failed('a'), failed('c'), updated('b')]).halted).toMatch(/a, c/);
  });
});

describe('a node that is down after its update', () => {
  const settings = { unhealthyAfter: 600_000 };
  const at = (seconds: number) => new Date(seconds * 1000).toISOString();
  /** Updated at -700 s in a reboot that began at -720 s; `now` is 0. */
  const down = (name: string, notReadyAt: number) =>
    observed(name, {
      node: aNode(name, {
        status: { conditions: [{ ...condition('Ready', 'False'), lastTransitionTime: at(notReadyAt) }] },
      }),
      machineConfigNode: {
        ...running(name, 'rendered-worker-2', {
          lastUpdate: {
            config: 'rendered-worker-2',
            actions: [...REBOOT],
            causes: [],
            source: '',
            startedAt: at(-720),
            finishedAt: at(-700),
            bootIDBefore: '',
            bootIDAfter: '',
            result: 'Succeeded',
          },
        }),
        spec: aMachineConfigNode(name, { configVersion: { desired: 'rendered-worker-2' } }).spec,
      },
    });
  const halted = (notReadyAt: number, more: Partial<PoolSettings> = {}) =>
    decide([down('a', notReadyAt), observed('b')], {}, {}, { ...settings, ...more }).halted;

  it('for longer than the pool’s patience stops the rollout, and is named with the reason', () => {
    expect(halted(-650)).toBe(
      'the rollout has stopped: 1 node failed and the threshold is 1: a (not Ready since its update)',
    );
    expect(halted(-599)).toBeUndefined();
    expect(halted(-650, { unhealthyAfter: 660_000 })).toBeUndefined();
  });

  it('was down before, or fell long after, stops nothing', () => {
    expect(halted(-800)).toBeUndefined();
    const late = decide([down('a', -650)], {}, {}, { unhealthyAfter: 40_000 });
    expect(late.halted).toBeUndefined();
  });

  it('is looked at again when the patience ends', () => {
    const all = someSettings(settings);
    const decision = decide([down('a', -590), observed('b')], {}, {}, settings);
    expect(lookAgainAfter(decision, all, { leaseSeconds: 300 })).toBe(10_000);
    const over = decide([down('a', -650), observed('b')], {}, {}, settings);
    expect(lookAgainAfter(over, all, { leaseSeconds: 300 })).toBeUndefined();
  });

  it('counts, too, when it never came back from its reboot', () => {
    const spec = { configVersion: { desired: 'rendered-worker-2' } };
    const plan = { config: 'rendered-worker-2', staged: true, actions: [...REBOOT], causes: [], source: 'x' };
    const grant = { level: 'Disrupt', config: 'rendered-worker-2', leaseHolder: 'us' } as const;
    const lost = observed('a', {
      node: down('a', -650).node,
      machineConfigNode: aMachineConfigNode('a', { ...spec, grant }, { plan }),
      lease: { by: 'us', since: -700_000 },
    });
    const { halted: why, steps } = decide([lost, observed('b')], {}, {}, settings);
    expect(why).toMatch(/a \(not Ready since its update\)/);
    expect(steps.get('a')?.kind).toBe('hold');
    expect(
      decide([{ ...lost, lease: { by: 'us', since: -640_000 } }], {}, {}, settings).halted,
    ).toBeUndefined();
  });
});

describe('a node whose live update failed', () => {
  const desired = { configVersion: { desired: 'rendered-worker-2' } };
  const plan = { config: 'rendered-worker-2', staged: true, causes: [], source: 'x' };
  const grant = { level: 'Live', config: 'rendered-worker-2', leaseHolder: 'us' } as const;
  const waiting = (name: string, actions = RESTART) =>
    observed(name, {
      machineConfigNode: aMachineConfigNode(name, desired, { plan: { ...plan, actions: [...actions] } }),
    });
  const fellBack = (name: string, more: Partial<ObservedNode> = {}) =>
    observed(name, {
      machineConfigNode: aMachineConfigNode(
        name,
        { ...desired, grant },
        { plan: { ...plan, actions: [...REBOOT], liveFailure: 'no such unit' } },
      ),
      lease: { by: 'us' },
      ...more,
    });
  const steps = (nodes: readonly ObservedNode[], spec = {}) =>
    [...decide(nodes, spec).steps].map(([name, step]) => `${name} ${step.kind}`);

  it('reboots although it has stopped the rollout, and no other node starts', () => {
    const nodes = [waiting('a', REBOOT), waiting('b'), fellBack('c')];
    expect(decide(nodes).halted).toContain('no such unit');
    expect(steps(nodes)).toEqual(['c take']);
    const cordoned = { [annotations.cordonedByShale]: 'true' };
    const node = aNode('c', {
      metadata: { name: 'c', annotations: cordoned },
      spec: { unschedulable: true },
    });
    expect(steps([waiting('b'), fellBack('c', { node })])).toEqual(['c drain']);
  });

  it('waits where the admin has paused the pool', () => {
    expect(steps([waiting('b'), fellBack('c')], { paused: true })).toEqual(['c back-out']);
  });
});

describe('a node that has to hold for a while', () => {
  const soaking = (sinceMs: number) => {
    const times = {
      startedAt: new Date(sinceMs - 1000).toISOString(),
      finishedAt: new Date(sinceMs).toISOString(),
    };
    const lastUpdate: UpdateRecord = {
      ...{ config: 'rendered-worker-2', actions: [...RESTART], causes: [], source: '', ...times },
      ...{ bootIDBefore: '', bootIDAfter: '', result: 'Succeeded' },
    };
    return observed('a', {
      machineConfigNode: {
        ...running('a', 'rendered-worker-2', { lastUpdate }),
        spec: aMachineConfigNode('a', { configVersion: { desired: 'rendered-worker-2' } }).spec,
      },
    });
  };

  // The clock goes on between a decision and the question; a node that proved itself in between made the rollout stand still.
  it.each([
    [-1, 2_999],
    [-2_999, 1],
    [-3_000, undefined],
  ])('updated %i ms ago is looked at again after %s ms', (since, wait) => {
    const decision = decide([soaking(since)], {}, {}, { soak: 3_000 });
    expect(lookAgainAfter(decision, someSettings({ soak: 3_000 }), { leaseSeconds: 300 })).toBe(wait);
  });
});

it('looks again in time to renew its leases, and not at all when nothing is under way', () => {
  const options = { ...defaultRolloutOptions, leaseSeconds: 300 };
  const wait = (nodes: readonly ObservedNode[]) => lookAgainAfter(decide(nodes), someSettings(), options);
  expect(wait([observed('a')])).toBeUndefined();
  expect(wait([observed('a', { lease: { by: 'us' } })])).toBe(100_000);
});

describe('outside of the maintenance windows', () => {
  // The windows below are asked at the epoch, a Thursday, 0:00 in UTC.
  const later = parseWindows('[{"schedule": "20 0 * * *", "duration": "1h"}]');
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
    const { steps, decision } = begun([staged('a', REBOOT), staged('b', RESTART)], { windows: later });
    expect(steps).toEqual([]);
    expect(decision.awaitsWindow).toEqual({ opensAt: 1_200_000 });
    expect(lookAgainAfter(decision, someSettings(), { leaseSeconds: 1 })).toBe(1_200_000);
  });

  it('live updates begin where the pool lets them', () => {
    const settings = { windows: later, liveOutsideWindows: true };
    const { steps, decision } = begun([staged('a', REBOOT), staged('b', RESTART)], settings);
    expect(steps).toEqual(['take b']);
    expect(decision.awaitsWindow).toBeDefined();
  });

  it('what has begun ends', () => {
    const mark = { metadata: { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } } };
    const drained = staged('a', REBOOT, { node: aNode('a', { ...mark, spec: { unschedulable: true } }) });
    expect(begun([drained], { windows: later }).steps).toEqual(['take a']);
    expect(begun([{ ...drained, lease: { by: 'us' } }], { windows: later }).steps).toEqual(['drain a']);
  });

  it('inside of one, nothing is different', () => {
    const now = parseWindows('[{"schedule": "30 23 * * *", "duration": "1h"}]');
    const { steps, decision } = begun([staged('a', REBOOT)], { windows: now });
    expect(steps).toEqual(['take a']);
    expect(decision.awaitsWindow).toBeUndefined();
  });
});

describe('a whole rollout, whatever happens on the way', () => {
  const anyWeather: fc.Arbitrary<Weather> = fc.record({
    nodes: fc.integer({ min: 1, max: 8 }),
    maxUnavailable: fc.integer({ min: 1, max: 3 }),
    plans: fc.array(fc.constantFrom('Reboot', 'Drain', 'Live'), { minLength: 8, maxLength: 8 }),
    /** What befalls the cluster between two looks; the simulation goes on calmly when they are used up. */
    happenings: fc.array(
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
      fc.property(anyWeather, (weather) => {
        const end = simulate(weather);
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
  const wait = { reason: 'AwaitingPools', why: 'pool canary is not Updated' } as const;
  const held = decide([fresh], {}, {}, { dependsOn: ['canary'] }, { awaitedPools: () => wait });
  expect([held.steps.size, held.startup.waiting[0]?.why]).toEqual([0, 'pool canary is not Updated']);
});
