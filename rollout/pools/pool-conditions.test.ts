import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aPool, aState, heldBy, image, REBOOT } from '../../test/fixtures/objects.ts';
import {
  AWAITED,
  AWAITING,
  aClosedWindow,
  BAKING,
  type Case,
  CONFIG,
  HELD,
  inputs,
  LAYERED,
  NONE,
  off,
  STANDARD,
  staged,
  text,
} from '../../test/fixtures/pool-status-inputs.ts';
import type { PoolDecision } from './decide-pool.ts';
import type { NodeStep } from './node-step.ts';
import {
  formatPoolTarget,
  heldUpdatesVerdict,
  settingsVerdict,
  triedVerdict,
  updatedVerdict,
  updatingVerdict,
} from './pool-conditions.ts';
import type { PoolTarget } from './pool-target.ts';
import type { DeadlineState } from './rollback-deadline.ts';

describe('UpdatesHeld', () => {
  it.each<[string, PoolDecision['startWaits'], string | undefined]>([
    ['nothing', [], undefined],
    ['one thing', [BAKING], 'True Baking wave 1 of 2 is 1 node'],
    ['two things', [AWAITED, BAKING], 'True AwaitingPools pool canary is not Updated; wave 1 of 2 is 1 node'],
  ])('waits for %s', (_what, startWaits, expected) => {
    const verdict = heldUpdatesVerdict({ startWaits });
    expect(verdict && text(verdict)).toBe(expected);
  });
});

describe('SettingsWarning', () => {
  it.each<[string, readonly string[], string | undefined]>([
    ['no warning', [], undefined],
    [
      'two warnings',
      ['a is unknown', 'b is ignored'],
      'True AnnotationsToReplace a is unknown; b is ignored',
    ],
  ])('with %s', (_what, warnings, expected) => {
    const verdict = settingsVerdict({ warnings });
    expect(verdict && text(verdict)).toBe(expected);
  });
});

describe('ChangeTried', () => {
  const request = { id: 'a', until: '2026-06-01T00:10:00Z', by: '', reason: '', at: '' };
  const deadline = (kind: 'waits' | 'passed', more = {}): DeadlineState => ({
    kind,
    request: { ...request, ...more },
    until: 0,
    recorded: { id: 'a', config: 'rendered-worker-1' },
  });

  it.each<[string, DeadlineState | undefined, string | undefined]>([
    ['no deadline that is known', undefined, undefined],
    ['no deadline', { kind: 'none' }, undefined],
    [
      'one that waits',
      deadline('waits', { by: 'alice', reason: 'NTP' }),
      'True AwaitingConfirmation Pool worker is rolled back to rendered-worker-1 at 2026-06-01T00:10:00Z unless the change of alice is confirmed (shale try confirm): NTP',
    ],
    [
      'one that has passed, of nobody',
      deadline('passed'),
      'True AwaitingConfirmation Pool worker is rolled back to rendered-worker-1 at 2026-06-01T00:10:00Z unless the change is confirmed (shale try confirm)',
    ],
    [
      'one that is refused',
      { kind: 'refused', recorded: { id: 'a' }, why: 'it is far away' },
      'False DeadlineRefused it is far away',
    ],
    [
      'one that can not be read',
      { kind: 'unreadable', recorded: undefined },
      "False DeadlineRefused its annotation can't be read",
    ],
  ])('is about %s', (_what, of, expected) => {
    const verdict = triedVerdict(inputs(of && { rollback: { deadline: of } }));
    expect(verdict && text(verdict)).toBe(expected);
  });
});

describe('Updated', () => {
  it.each<[string, Case, string]>([
    ['no node', {}, `The pool has no nodes; its target is ${CONFIG}`],
    ['one node', { states: [aState('a')] }, `The pool's only node runs ${CONFIG}`],
    [
      'a node that had to reboot',
      { states: [aState('a', { liveFailure: { why: 'no such unit' } }), aState('b')] },
      `All 2 nodes run ${CONFIG}; a rebooted because its live update failed: no such unit`,
    ],
    ['two nodes', { states: [aState('a'), aState('b')] }, `All 2 nodes run ${CONFIG}`],
    [
      'an image',
      { states: [aState('a'), aState('b')], target: LAYERED },
      `All 2 nodes run ${CONFIG} as ${image('2')}`,
    ],
    [
      'one node, switched off',
      { states: [off('a')] },
      `0 of 1 node runs ${CONFIG}; a is not waited for: switched off on request`,
    ],
    [
      'one of two nodes switched off',
      { states: [off('b'), aState('a')] },
      `1 of 2 nodes run ${CONFIG}; b is not waited for: switched off on request`,
    ],
    [
      'nodes that a rollout would skip, by name',
      {
        states: [
          aState('b', { lease: { by: 'other', holder: 'ops' } }),
          aState('a', { holders: [heldBy('a NodeMaintenance is active')] }),
        ],
      },
      `All 2 nodes run ${CONFIG}; a would be skipped: a NodeMaintenance is active; b would be skipped: its lease is held by ops`,
    ],
  ])('with %s', (_what, given, message) => {
    expect(text(updatedVerdict(inputs(given), true))).toBe(`True AllNodesUpdated ${message}`);
  });

  it('is False while nodes are outstanding, and for as long as a rollback holds the pool', () => {
    expect(text(updatedVerdict(inputs({ target: HELD }), false))).toBe('False NodesOutstanding');
    expect(text(updatedVerdict(inputs({ target: HELD }), true))).toBe(
      `False RolledBack The pool was rolled back by ann: fan; it stays there until the annotation ${annotations.rollback} is removed or its target is no longer ${CONFIG}`,
    );
  });
});

describe('a rollback', () => {
  it.each([
    [
      'waits for another label',
      { awaits: { why: 'the builder labels it again', until: Date.parse('2026-06-01T00:01:00Z') } },
      "rolled back by ann: fan; nodes wait until 2026-06-01T00:01:00.000Z at the latest for a label by which they don't reboot: the builder labels it again",
    ],
    [
      'needs reboots that another label would spare',
      { reboots: 'MachineOSBuild x failed' },
      'rolled back by ann: fan; nodes reboot to the image as it was recorded: MachineOSBuild x failed',
    ],
  ])('that %s says so', (_what, more, message) => {
    const given = inputs({ machineCount: 1, target: { ...HELD, ...more } as PoolTarget });
    expect(text(updatingVerdict(given, false, 0))).toBe(
      `True RollingBack 0 of 1 node runs rendered-worker-1; ${message}`,
    );
  });
});

describe('Updating', () => {
  const STAGED_AHEAD = aState('a', { progress: { kind: 'staged', actions: [...REBOOT] } });
  const COUNT = `1 of 3 nodes run ${CONFIG}`;
  const verdict = (given: Case, done = false) =>
    text(updatingVerdict(inputs({ machineCount: 3, ...given }), done, 1));

  it.each<[string, Case, string]>([
    [
      'a paused pool',
      { pool: aPool('worker', { paused: true }) },
      `False Paused The pool is paused; ${COUNT}`,
    ],
    [
      'a paused pool whose nodes have staged its target',
      {
        pool: aPool('worker', { paused: true }),
        states: [
          STAGED_AHEAD,
          aState('b'),
          aState('c', { assigned: false, progress: STAGED_AHEAD.update.progress }),
        ],
      },
      `False Paused The pool is paused; ${COUNT}; 1 node has staged it`,
    ],
    [
      'a paused pool in which two nodes have staged its target',
      { pool: aPool('worker', { paused: true }), states: [STAGED_AHEAD, { ...STAGED_AHEAD, name: 'b' }] },
      `False Paused The pool is paused; ${COUNT}; 2 nodes have staged it`,
    ],
    ['no target', { target: NONE }, 'False NoTarget no configuration is rendered yet'],
    [
      'an image that is being built',
      { target: AWAITING },
      'True Building Nodes stay on what they run: MachineOSBuild build-2 is running',
    ],
    [
      'a failed build',
      { target: { ...AWAITING, state: 'BuildFailed', why: 'MachineOSBuild build-2 failed' } },
      'False BuildFailed Nodes stay on what they run: MachineOSBuild build-2 failed',
    ],
    [
      'failed nodes',
      { decision: { halted: 'the rollout has stopped: 1 node failed' } },
      `False RolloutStopped ${COUNT}; the rollout has stopped: 1 node failed`,
    ],
    [
      'nodes that are not managed',
      { settings: { suspended: 'spec.managementState is Unmanaged' } },
      `False Unmanaged ${COUNT}; spec.managementState is Unmanaged`,
    ],
    [
      'a setting for which no value is safe',
      { settings: { closed: 'annotation x can’t be read' } },
      `False NothingBegins ${COUNT}; annotation x can’t be read`,
    ],
    [
      'a window that opens',
      { decision: { awaitsWindow: aClosedWindow(Date.UTC(2026, 5, 6, 20)) } },
      `True AwaitingMaintenanceWindow ${COUNT}; the next maintenance window opens at 2026-06-06T20:00:00.000Z`,
    ],
    [
      'no window that ever opens',
      { decision: { awaitsWindow: aClosedWindow() } },
      `True AwaitingMaintenanceWindow ${COUNT}; no maintenance window will ever open`,
    ],
    [
      'other pools',
      { decision: { startWaits: [AWAITED] } },
      `True AwaitingPools ${COUNT}; pool canary is not Updated`,
    ],
    [
      'other pools, nodes that bake, and a window',
      { decision: { startWaits: [AWAITED, BAKING], awaitsWindow: aClosedWindow() } },
      `True AwaitingPools ${COUNT}; pool canary is not Updated; wave 1 of 2 is 1 node; no maintenance window will ever open`,
    ],
    [
      'no slot',
      { decision: { slotsTaken: true, skipped: [{ name: 'a', ...heldBy('no') }] } },
      `True MaxUnavailableReached ${COUNT}; no node can start: maxUnavailable is used up; raise it; a: skipped: no`,
    ],
    [
      'skipped nodes',
      { decision: { skipped: [{ name: 'a', ...heldBy('its lease is held by ops') }] } },
      `True NodesPassedBy ${COUNT}; a: skipped: its lease is held by ops`,
    ],
    ['nothing to remark', {}, `True NodesUpdating ${COUNT}`],
    [
      'a rollback',
      { target: HELD, decision: { slotsTaken: true } },
      'True RollingBack 1 of 3 nodes run rendered-worker-1; rolled back by ann: fan; no node can start: maxUnavailable is used up; raise it',
    ],
  ])('with %s', (_what, given, expected) => {
    expect(verdict(given)).toBe(expected);
  });

  it('is False when every node is updated, whatever else there is to report', () => {
    expect(verdict({ decision: { slotsTaken: true } }, true)).toBe('False AllNodesUpdated');
    expect(verdict({ target: HELD }, true)).toMatch(
      /^False RolledBack 1 of 3 nodes run rendered-worker-1; rolled back by ann: fan; it stays there/,
    );
  });

  const waiting: [NodeStep, string | undefined][] = [
    [{ kind: 'keep-lease', why: 'the daemon applies the update' }, 'the daemon applies the update'],
    [{ kind: 'suspend', why: 'lost its lease to ops' }, 'lost its lease to ops'],
    [{ kind: 'back-out', why: 'the pool is paused' }, 'the pool is paused'],
    [{ kind: 'let-go', why: 'failing for too long' }, 'failing for too long'],
    [{ kind: 'drain' }, 'is being drained'],
    [{ kind: 'take', level: 'Live' }, undefined],
    [{ kind: 'finish' }, undefined],
    [{ kind: 'none' }, undefined],
  ];
  it.each(waiting)('reports what a node waits for: %j', (step, why) => {
    const remark = why === undefined ? '' : `; a: ${why}`;
    expect(
      verdict({ states: [staged('a')], machineCount: 3, decision: { steps: new Map([['a', step]]) } }),
    ).toBe(`True NodesUpdating ${COUNT}${remark}`);
  });

  it('has one remark for each node, the one that is nearest to what is done about it', () => {
    const preparing = aState('a', { progress: { kind: 'preparing', why: 'pulling' } });
    const silent = aState('z', { progress: { kind: 'preparing' } });
    const steps = new Map<string, NodeStep>([['b', { kind: 'drain' }]]);
    const given = {
      states: [off('c'), preparing, staged('b'), silent],
      machineCount: 3,
      decision: { steps },
    };
    expect(verdict(given)).toBe(
      `True NodesUpdating ${COUNT}; a: pulling; b: is being drained; c: not waited for: switched off on request`,
    );
    const unavailable = [{ name: 'b', why: 'not Ready', remedy: '' }];
    expect(verdict({ ...given, decision: { steps, unavailable } })).toMatch(/b: unavailable: not Ready/);
    const skipped = [{ name: 'b', ...heldBy('its lease is held by ops') }];
    expect(verdict({ ...given, decision: { steps, unavailable, skipped } })).toMatch(/b: skipped: its lease/);
    expect(verdict({ ...given, decision: { steps, skipped }, notes: new Map([['b', 'noted']]) })).toMatch(
      /; b: noted; c/,
    );
  });

  it.each([
    [10, ''],
    [11, '; and 1 more'],
    [200, '; and 190 more'],
  ])('names ten of %i nodes', (count, more) => {
    const skipped = Array.from({ length: count }, (_, index) => ({
      name: `n${String(index).padStart(3, '0')}`,
      ...heldBy('no'),
    }));
    const message = verdict({ decision: { skipped: skipped.toReversed() } });
    expect(message).toMatch(new RegExp(`; n000: skipped: no;.*; n009: skipped: no${more}$`));
  });

  it('of a pool of one node is a sentence', () => {
    expect(text(updatingVerdict(inputs({ machineCount: 1 }), false, 0))).toBe(
      `True NodesUpdating 0 of 1 node runs ${CONFIG}`,
    );
  });
});

it.each<[PoolTarget, string]>([
  [NONE, 'no configuration'],
  [STANDARD, CONFIG],
  [LAYERED, `${CONFIG} as ${image('2')}`],
  [AWAITING, `${CONFIG} as an image`],
  [HELD, 'rendered-worker-1'],
  [{ ...HELD, target: { config: 'c', image: image('1') } } as PoolTarget, `c as ${image('1')}`],
])('a target %j is shown as %s', (target, expected) => {
  expect(formatPoolTarget(target)).toBe(expected);
});
