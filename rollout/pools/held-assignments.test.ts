import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aMachineConfigNode, aNode, condition, REBOOT } from '../../test/fixtures/objects.ts';
import { decide, observed, running } from '../../test/fixtures/pool-decided.ts';
import { defaultRolloutOptions } from '../options.ts';
import { lookAgainAfter } from './decide-pool.ts';
import type { ObservedNode } from './pool-observation.ts';
import { poolSettings } from './pool-settings.ts';

const OLD = 'rendered-worker-1';
const NEXT = 'rendered-worker-2';
const assigned = (more: Partial<ObservedNode>, settings = {}) =>
  decide([observed('a', more)], {}, {}, settings).assign.get('a')?.target.config;
const flagged = (annotation: string) =>
  aNode('a', { metadata: { name: 'a', annotations: { [annotation]: '{"by":"ann"}' } } });
const other = { by: 'other', holder: 'node-maintenance' } as const;

describe('while somebody else holds a node, it gets no other target to stage', () => {
  it.each<[string, Partial<ObservedNode>]>([
    ['whose lease another holds', { lease: other }],
    ['with a NodeMaintenance', { inMaintenance: true }],
    ['that is flagged for maintenance', { node: flagged(annotations.plannedMaintenance) }],
    ['that was powered off', { node: flagged(annotations.poweredOff) }],
    ['whose Machine is being deleted', { machineDeleting: true }],
    [
      'that Karpenter disrupts',
      { node: aNode('a', { spec: { taints: [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }] } }) },
    ],
  ])('%s', (_what, more) => {
    expect(assigned(more)).toBe(OLD);
    expect(assigned({})).toBe(NEXT);
  });

  it('but one that is only cordoned: whoever drains a node to reboot it may wait for what it boots', () => {
    expect(assigned({ node: aNode('a', { spec: { unschedulable: true } }) })).toBe(NEXT);
  });

  it('nor does a node that joins, whose MachineConfigNode would have one', () => {
    const unassigned = (more: Partial<ObservedNode>) =>
      decide([observed('a', { machineConfigNode: undefined, ...more })]).create.length;
    expect([unassigned({ lease: other }), unassigned({})]).toEqual([0, 1]);
  });

  it('and the pool says so, looks again, and makes up for it when the node is given back', () => {
    const held = decide([observed('a', { lease: other }), observed('b')]);
    expect(held.skipped).toEqual([
      { name: 'a', reason: 'LeaseHeld', message: 'its lease is held by node-maintenance' },
    ]);
    const settings = poolSettings({ metadata: { name: 'worker' } }, defaultRolloutOptions.pace);
    expect(lookAgainAfter(held, settings, defaultRolloutOptions.leases)).toBe(30_000);
    expect(assigned({ lease: { by: 'nobody' } })).toBe(NEXT);
  });

  it('and says so of a node that joins, which no event brings back either', () => {
    const unassigned = observed('a', { machineConfigNode: undefined, lease: other });
    const held = decide([unassigned]);
    expect(held.skipped).toEqual([
      { name: 'a', reason: 'LeaseHeld', message: 'its lease is held by node-maintenance' },
    ]);
    const settings = poolSettings({ metadata: { name: 'worker' } }, defaultRolloutOptions.pace);
    expect(lookAgainAfter(held, settings, defaultRolloutOptions.leases)).toBe(30_000);
    expect(decide([unassigned], { paused: true }).skipped).toHaveLength(1);
  });

  it('but is counted where it joins while its Machine is deleted, so that nothing waits for it', () => {
    const leaving = observed('a', { machineConfigNode: undefined, machineDeleting: true });
    expect(decide([leaving]).create.map(({ node }) => node.metadata.name)).toEqual(['a']);
  });

  it('and says so where others reboot nodes and an earlier target is staged', () => {
    const staged = { config: OLD, staged: true, actions: [...REBOOT], causes: [], source: 'x' };
    const machineConfigNode = aMachineConfigNode('a', { configVersion: { desired: OLD } }, { plan: staged });
    const held = (more: Partial<ObservedNode>) =>
      decide([observed('a', { machineConfigNode, ...more })], {}, {}, { rebootPolicy: 'AtNextReboot' })
        .skipped;
    expect(held({ lease: other }).map(({ name }) => name)).toEqual(['a']);
    expect(held({})).toEqual([]);
  });

  it('and a paused pool skips nobody', () => {
    expect(decide([observed('a', { lease: other })], { paused: true }).skipped).toEqual([]);
  });

  it('and the node of the operator does not wait for it', () => {
    const plan = {
      config: NEXT,
      staged: true,
      actions: [{ type: 'Reboot' } as const],
      causes: [],
      source: 'x',
    };
    const own = observed('own', {
      machineConfigNode: aMachineConfigNode('own', { configVersion: { desired: NEXT } }, { plan }),
    });
    const steps = (more: Partial<ObservedNode>) =>
      decide([own, observed('a', more)], { maxUnavailable: 2 }, { pace: { operatorNode: 'own' } }).steps.size;
    expect([steps({}), steps({ lease: other })]).toEqual([0, 1]);
  });

  it('and is told who has it, until the node is given back', () => {
    const heldBy = (more: Partial<ObservedNode>, spec = {}) => {
      const machineConfigNode = aMachineConfigNode('a', { configVersion: { desired: OLD }, ...spec });
      return decide([observed('a', { machineConfigNode, ...more })]).assign.get('a')?.heldBy;
    };
    expect(heldBy({ lease: other })).toBe('its lease is held by node-maintenance');
    expect(heldBy({ inMaintenance: true })).toBe('a NodeMaintenance is active');
    expect(heldBy({})).toBeUndefined();
    expect(heldBy({ node: aNode('a', { spec: { unschedulable: true } }) })).toBeUndefined();
    // What was granted is finished: who waits for the lease would wait for ever. Unless another got it all the same.
    const grant = { level: 'Disrupt', config: OLD, leaseHolder: 'shale-operator' } as const;
    expect(heldBy({ lease: { by: 'us' }, inMaintenance: true }, { grant })).toBeUndefined();
    expect(heldBy({ lease: other }, { grant })).toBe('its lease is held by node-maintenance');
  });

  it('and takes none of the places of those that stage, nor does the node of the operator wait for it', () => {
    const begun = {
      configVersion: { current: OLD, desired: NEXT },
      conditions: [condition('UpdatePrepared', 'False')],
    };
    const staging = (more: Partial<ObservedNode>) =>
      observed('b', {
        machineConfigNode: aMachineConfigNode('b', { configVersion: { desired: NEXT } }, begun),
        ...more,
      });
    const next = (more: Partial<ObservedNode>) =>
      decide([staging(more), observed('a')], {}, { pace: { stagingLimit: 1 } }).assign.get('a')?.target
        .config;
    expect([next({}), next({ lease: other })]).toEqual([OLD, NEXT]);

    const plan = { config: NEXT, staged: true, actions: [...REBOOT], causes: [], source: 'x' };
    const spec = { configVersion: { desired: NEXT } };
    const own = observed('own', { machineConfigNode: aMachineConfigNode('own', spec, { plan }) });
    const steps = (more: Partial<ObservedNode>) =>
      decide([own, staging(more)], { maxUnavailable: 2 }, { pace: { operatorNode: 'own' } }).steps.size;
    expect([steps({}), steps({ lease: other })]).toEqual([0, 1]);
  });

  it('in a paused pool, too', () => {
    const machineConfigNode = aMachineConfigNode('a', { configVersion: { desired: OLD } });
    const paused = decide([observed('a', { machineConfigNode, lease: other })], { paused: true });
    expect(paused.assign.get('a')?.heldBy).toBe('its lease is held by node-maintenance');
  });

  it('while what runs its target stays as it is', () => {
    const done = running('a', NEXT);
    const spec = { ...done.spec, configVersion: { desired: NEXT } };
    const decision = decide([observed('a', { lease: other, machineConfigNode: { ...done, spec } })]);
    expect(decision.skipped).toEqual([]);
  });
});
