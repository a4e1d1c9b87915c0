import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import {
  aMachineConfigNode,
  aNode,
  condition,
  image,
  REBOOT,
  RESTART,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { decide, NEXT, observed, running } from '../../test/fixtures/pool-decided.ts';
import { lookAgainAfter } from './decide-pool.ts';
import type { ObservedNode, PoolObservation } from './pool-observation.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

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
      kind: 'rolled-back',
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

describe('a node that retries the target at which it failed', () => {
  const ended = {
    config: 'rendered-worker-2',
    actions: [...REBOOT],
    causes: [],
    source: '',
    message: 'full disk',
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: '2026-01-01T00:01:00Z',
    bootIDBefore: '',
    bootIDAfter: '',
    result: 'RolledBack' as const,
  };
  const atTarget = (name: string, withFailure: boolean) => {
    const plan = { config: 'rendered-worker-2', staged: true, actions: [...REBOOT], causes: [], source: '' };
    const status = { plan, ...(withFailure ? { lastUpdate: ended } : {}) };
    const spec = { configVersion: { desired: 'rendered-worker-2' } };
    return observed(name, { machineConfigNode: aMachineConfigNode(name, spec, status) });
  };
  const begun = (nodes: readonly ObservedNode[], settings: Partial<PoolSettings> = {}, spec = {}) => {
    const { halted, steps } = decide(nodes, spec, {}, settings);
    return { halted, steps: [...steps].map(([name, { kind }]) => `${kind} ${name}`) };
  };

  it('starts although it stopped the rollout, and no other node does', () => {
    expect(begun([atTarget('a', true), atTarget('b', false)], {}, { maxUnavailable: 2 })).toEqual({
      halted: 'the rollout has stopped: 1 node failed and the threshold is 1: a (retrying)',
      steps: ['take a'],
    });
  });

  it('waits as any node does in a paused pool', () => {
    const { steps } = begun([atTarget('a', true), atTarget('b', false)], {}, { paused: true });
    expect(steps).toEqual([]);
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
    expect(lookAgainAfter(decision, all, { seconds: 300 })).toBe(10_000);
    const over = decide([down('a', -650), observed('b')], {}, {}, settings);
    expect(lookAgainAfter(over, all, { seconds: 300 })).toBeUndefined();
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
    expect(steps.get('a')?.kind).toBe('keep-lease');
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
