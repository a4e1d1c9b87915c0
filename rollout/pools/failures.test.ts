import { describe, expect, it } from 'vitest';
import {
  aPool,
  aState,
  condition,
  REBOOT,
  RESTART,
  type StateFields,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { awaitsRecovery, type Halt, haltOf, recoveryOf, retriesTarget } from './failures.ts';
import type { NodeState } from './node-state.ts';
import type { PoolSettings } from './pool-settings.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-01-02T00:00:00Z');
const liveFailure = { why: 'chronyd does not start' };
const recovered = (name: string, endedAt = NOW, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'updated' }, liveFailure: { ...liveFailure, endedAt }, ...more });
const halfway = (name: string, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'staged', actions: REBOOT }, liveFailure, ...more });
const waiting = (name: string) => aState(name, { progress: { kind: 'staged', actions: RESTART } });
const updated = (name: string) => aState(name, { progress: { kind: 'updated' } });
const failed = (name: string) => aState(name, { progress: { kind: 'degraded', why: 'no', since: NOW } });

function halt(states: readonly NodeState[], settings: Partial<PoolSettings> = {}, updatedSince = ''): Halt {
  const pool = aPool('worker');
  const since = { ...condition('Updated', 'False'), lastTransitionTime: updatedSince };
  const status = { ...pool.status, conditions: updatedSince === '' ? [] : [since] };
  return haltOf({ pool: { status: status }, states, settled: 0, settings: someSettings(settings) }, NOW);
}

const stopped = (nodes: string, threshold: number, failures: string) =>
  `the rollout has stopped: ${nodes} failed and the threshold is ${threshold}: ${failures}`;
const FELL_BACK = '(its live update failed: chronyd does not start; it rebooted instead)';
const FALLS_BACK = '(its live update failed: chronyd does not start; it reboots instead)';

describe('a live update that failed', () => {
  it.each<[string, Halt, Halt]>([
    [
      'stops the rollout at its first node, before its reboot',
      halt([halfway('a'), waiting('b')]),
      { kind: 'halted', why: stopped('1 node', 1, `a ${FALLS_BACK}`), mayRecover: true },
    ],
    [
      'and after it, because what a reboot has brought about is no proof',
      halt([recovered('a'), waiting('b')]),
      { kind: 'halted', why: stopped('1 node', 1, `a ${FELL_BACK}`), mayRecover: true },
    ],
    [
      'stops nothing below the threshold',
      halt([updated('a'), recovered('b'), waiting('c')]),
      { kind: 'none' },
    ],
    [
      'counts with others that failed',
      halt([updated('a'), recovered('b'), failed('c'), waiting('d')]),
      { kind: 'halted', why: stopped('2 nodes', 2, `b ${FELL_BACK}, c`), mayRecover: true },
    ],
    [
      'is not recovered from where others have stopped the rollout anyway',
      halt([halfway('b'), failed('c'), waiting('d')]),
      { kind: 'halted', why: stopped('2 nodes', 1, `b ${FALLS_BACK}, c`), mayRecover: false },
    ],
    ['stops nothing where no other node is left', halt([halfway('a'), updated('b')]), { kind: 'none' }],
    ['stops nothing where all nodes fell back', halt([recovered('a'), recovered('b')]), { kind: 'none' }],
    [
      'stops nothing where the others are away',
      halt([recovered('a'), aState('b', { away: { kind: 'switched-off', why: 'fan' } })]),
      { kind: 'none' },
    ],
    ['at another target counts no more', halt([recovered('a', NOW, { assigned: false })]), { kind: 'none' }],
    [
      'is history once a rollout has been complete',
      halt([recovered('a', NOW - HOUR), waiting('new')], {}, '2026-01-01T23:59:00Z'),
      { kind: 'none' },
    ],
    [
      'counts where only the clocks of node and operator differ',
      halt([recovered('a', NOW - 120_000), waiting('b')], {}, '2026-01-01T23:59:00Z'),
      { kind: 'halted', why: stopped('1 node', 1, `a ${FELL_BACK}`), mayRecover: true },
    ],
    [
      'stops at the threshold that the pool has',
      halt([recovered('a'), recovered('b'), waiting('c')], { failureThreshold: { unproven: 3, proven: 3 } }),
      { kind: 'none' },
    ],
  ])('%s', (_what, found, expected) => {
    expect(found).toEqual(expected);
  });

  it('leaves a node that waits for its reboot until it has rebooted', () => {
    expect(awaitsRecovery(halfway('a'))).toBe(true);
    expect(awaitsRecovery(recovered('a'))).toBe(false);
    expect(awaitsRecovery(waiting('a'))).toBe(false);
    expect(awaitsRecovery(halfway('a', { assigned: false }))).toBe(false);
  });

  it('is told of a node that has recovered from it', () => {
    expect(recoveryOf(recovered('a'))).toBe(
      'a rebooted because its live update failed: chronyd does not start',
    );
    expect(recoveryOf(halfway('a'))).toBeUndefined();
    expect(recoveryOf(updated('a'))).toBeUndefined();
  });
});

describe('a node that takes a target again at which it failed', () => {
  const retrying = (name: string, more: StateFields = {}) =>
    aState(name, { progress: { kind: 'staged', actions: REBOOT }, failedAtTarget: true, ...more });
  const halted = (failures: string, mayRecover = false) => ({
    kind: 'halted',
    why: stopped('1 node', 1, failures),
    mayRecover,
  });

  it.each<[string, NodeState[], object]>([
    ['counts as failed while it waits', [retrying('a'), waiting('b')], halted('a (retrying)')],
    [
      'and while it is prepared',
      [retrying('a', { progress: { kind: 'preparing' } }), waiting('b')],
      halted('a (retrying)'),
    ],
    [
      'and while it is at it',
      [retrying('a', { work: { cordon: { uncordon: true }, grant: 'Disrupt' } }), waiting('b')],
      halted('a (retrying)'),
    ],
    [
      'and once it has failed again',
      [retrying('a', { progress: { kind: 'degraded', why: 'no', since: NOW } }), waiting('b')],
      halted('a'),
    ],
    [
      'once, although it failed live before that',
      [retrying('a', { liveFailure: { ...liveFailure, endedAt: NOW } }), waiting('b')],
      halted('a (retrying)'),
    ],
    ['and no more once it runs the target', [updated('a'), waiting('b')], { kind: 'none' }],
    ['nor with another target', [retrying('a', { assigned: false }), waiting('b')], { kind: 'none' }],
    [
      'nor while it is away',
      [retrying('a', { away: { kind: 'switched-off', why: 'fan' } }), waiting('b')],
      { kind: 'none' },
    ],
  ])('%s', (_what, states, expected) => {
    expect(halt(states)).toEqual(expected);
  });

  it('is none that reached it, or that failed at none', () => {
    expect(retriesTarget(retrying('a'))).toBe(true);
    expect(retriesTarget(waiting('a'))).toBe(false);
    expect(retriesTarget(retrying('a', { progress: { kind: 'updated' } }))).toBe(false);
  });

  it('is not between two states because the live update before that failed', () => {
    expect(awaitsRecovery(retrying('a', { liveFailure: { ...liveFailure, endedAt: NOW } }))).toBe(false);
  });
});

describe('a node that booted the target before the rollout came to it', () => {
  const ungranted = aState('b', { progress: { kind: 'updated', withoutGrant: true } });

  it('restarts no rollout that another node has stopped', () => {
    const threshold = { failureThreshold: { proven: 2, unproven: 1 } };
    const why = stopped('1 node', 1, 'a');
    expect(halt([failed('a'), ungranted, waiting('c')], threshold)).toMatchObject({ kind: 'halted', why });
    expect(halt([failed('a'), updated('b'), waiting('c')], threshold)).toEqual({ kind: 'none' });
  });
});
