import { describe, expect, it } from 'vitest';
import { aState, heldBy, REBOOT, RESTART, type StateFields } from '../../test/fixtures/objects.ts';
import type { NodeState } from './node-state.ts';
import { downSince, isSettled, nodeStep } from './node-step.ts';

const context = { closed: undefined, patience: 1000, unhealthyAfter: 2000, now: 10_000 };
const ours = { by: 'us' } as const;
const cordoned: NodeState['work'] = { cordon: { uncordon: true }, grant: undefined };
const asBefore: NodeState['work'] = { cordon: { uncordon: false }, grant: undefined };
const granted: NodeState['work'] = { cordon: { uncordon: true }, grant: 'Disrupt' };
const live: NodeState['work'] = { cordon: undefined, grant: 'Live' };
const reboot: NodeState['update']['progress'] = { kind: 'staged', actions: REBOOT };
const restart: NodeState['update']['progress'] = { kind: 'staged', actions: RESTART };
const off = {
  ready: false,
  away: { kind: 'switched-off', why: 'fan' },
  holders: [{ reason: 'PoweredOff', message: 'fan' }],
} as const;
const preparing: NodeState['update']['progress'] = { kind: 'preparing' };
/** Rebooted, and not Ready since the update ended. */
const downAt = (since: number): StateFields => ({
  ready: false,
  notReadySince: since - 1,
  progress: { kind: 'updated', startedAt: since - 2, since },
});
const failedAt = (since: number): NodeState['update']['progress'] => ({
  kind: 'degraded',
  why: 'no space',
  since,
});

describe('the next step for a node', () => {
  it.each<[string, StateFields, string]>([
    ['nothing of ours on it', { progress: reboot }, 'none'],
    ['cordoned, reboot staged', { lease: ours, work: cordoned, progress: reboot }, 'drain'],
    ['granted, reboot staged', { lease: ours, work: granted, progress: reboot }, 'keep-lease'],
    ['granted, lease expired', { work: granted, progress: reboot }, 'keep-lease'],
    ['in the middle of the reboot', { lease: ours, work: granted, progress: preparing }, 'keep-lease'],
    ['rebooted and Ready', { lease: ours, work: granted }, 'finish'],
    ['rebooted, not Ready', { lease: ours, work: granted, ready: false }, 'keep-lease'],
    ['rebooted, down a moment', { lease: ours, work: granted, ...downAt(8_500) }, 'keep-lease'],
    ['rebooted, down for long', { lease: ours, work: granted, ...downAt(8_000) }, 'let-go'],
    ['rebooted, down for long and let go', { work: cordoned, ...downAt(8_000) }, 'none'],
    ['rebooted, let go and back', { work: cordoned, ...downAt(8_000), ready: true }, 'finish'],
    ['rebooted, Ready is the old boot’s', { lease: ours, work: granted, bootAgrees: false }, 'keep-lease'],
    ['granted live', { lease: ours, work: live, progress: restart }, 'keep-lease'],
    ['updated live', { lease: ours, work: live }, 'finish'],
    ['a live update failed and a reboot is asked for', { lease: ours, work: live, progress: reboot }, 'none'],
    ['only the lease is left', { lease: ours }, 'finish'],
    ['the lease is ours and nothing is staged', { lease: ours, progress: preparing }, 'back-out'],
    ['cordoned and a new target came', { lease: ours, work: cordoned, progress: preparing }, 'keep-lease'],
    ['failed a moment ago', { lease: ours, work: granted, progress: failedAt(9_500) }, 'keep-lease'],
    ['failed for long', { lease: ours, work: granted, progress: failedAt(9_000) }, 'let-go'],
    ['failed for long and let go', { work: cordoned, progress: failedAt(9_000) }, 'none'],
    [
      'the lease went to another',
      { lease: { by: 'other', holder: 'x' }, work: granted, progress: reboot },
      'suspend',
    ],
    [
      'cordoned, the lease went to another',
      { lease: { by: 'other', holder: 'x' }, work: cordoned, progress: reboot },
      'none',
    ],
    ['taken, then flagged', { lease: ours, progress: reboot, holders: [heldBy('flagged')] }, 'back-out'],
    [
      'cordoned before, about to be drained, then flagged',
      { lease: ours, work: asBefore, progress: reboot, holders: [heldBy('flagged')] },
      'back-out',
    ],
    [
      'about to be drained, then flagged',
      { lease: ours, work: cordoned, progress: reboot, holders: [heldBy('flagged')] },
      'let-go',
    ],
    [
      'about to be drained for an earlier target, then flagged',
      { lease: ours, work: cordoned, progress: preparing, holders: [heldBy('flagged')] },
      'let-go',
    ],
    ['flagged and let go', { work: cordoned, progress: reboot, holders: [heldBy('flagged')] }, 'none'],
    ['flagged, let go, and given back', { work: cordoned, progress: reboot }, 'none'],
    [
      'rebooted and Ready, flagged meanwhile',
      { lease: ours, work: granted, holders: [heldBy('flagged')] },
      'let-go',
    ],
    ['rebooted, flagged and let go', { work: cordoned, holders: [heldBy('flagged')] }, 'none'],
    ['rebooted, flagged, let go, and given back', { work: cordoned }, 'finish'],
    [
      'rebooting, flagged meanwhile',
      { lease: ours, work: granted, progress: preparing, holders: [heldBy('flagged')] },
      'keep-lease',
    ],
    ['updated live, flagged meanwhile', { lease: ours, work: live, holders: [heldBy('flagged')] }, 'finish'],
    [
      'about to be drained, then another target came',
      { lease: ours, work: cordoned, progress: reboot, assigned: false },
      'back-out',
    ],
    ['a lease of ours ran out', { lease: { by: 'nobody', left: true }, ready: false }, 'back-out'],
    ['granted, then switched off', { lease: ours, work: granted, progress: reboot, ...off }, 'let-go'],
    ['drained, then switched off', { lease: ours, work: cordoned, progress: reboot, ...off }, 'let-go'],
    ['failed, then switched off', { work: cordoned, progress: failedAt(0), ...off }, 'none'],
    [
      'cordoned by others before, then switched off',
      { lease: ours, work: { ...cordoned, cordon: { uncordon: false } }, progress: reboot, ...off },
      'back-out',
    ],
    [
      'granted, and the lease is kept for whoever switched it off',
      { lease: { by: 'powered-off' }, work: granted, progress: reboot, ...off },
      'suspend',
    ],
    [
      'updated, and the lease is kept for whoever switched it off',
      { lease: { by: 'powered-off' }, work: cordoned, progress: { kind: 'updated' } },
      'none',
    ],
    [
      'granted, then another target came',
      { lease: ours, work: granted, progress: reboot, assigned: false },
      'keep-lease',
    ],
  ])('%s', (_what, more, step) => {
    expect(nodeStep(aState('n', more), context).kind).toBe(step);
  });

  it('in a closed pool leaves the cordon to whoever holds the node', () => {
    const closed = { ...context, closed: 'the pool is paused' };
    const held = { lease: ours, work: cordoned, progress: reboot, holders: [heldBy('flagged')] };
    expect(nodeStep(aState('n', held), closed)).toEqual({ kind: 'let-go', why: 'flagged' });
    expect(nodeStep(aState('n', { work: cordoned, progress: reboot }), closed).kind).toBe('back-out');
  });

  it('in a closed pool finishes what was granted and backs out of the rest', () => {
    const closed = { ...context, closed: 'the pool is paused' };
    expect(nodeStep(aState('n', { lease: ours, work: granted, progress: reboot }), closed).kind).toBe(
      'keep-lease',
    );
    expect(nodeStep(aState('n', { lease: ours, work: granted }), closed).kind).toBe('finish');
    expect(nodeStep(aState('n', { lease: ours, work: cordoned, progress: reboot }), closed)).toEqual({
      kind: 'back-out',
      why: 'the pool is paused',
    });
  });
});

const progress: NodeState['update']['progress'] = { kind: 'updated', since: 1_000 };
it.each<[string, StateFields, boolean]>([
  ['updated and at rest', {}, true],
  ['not Ready', { ready: false }, false],
  ['cordoned', { schedulable: false }, false],
  ['on its way to another target', { assigned: false }, false],
  ['under our lease', { lease: { by: 'us' } }, false],
  ["under another's lease", { lease: { by: 'other', holder: 'x' } }, false],
  ['with a lease that was left', { lease: { by: 'nobody', left: true } }, false],
  ['flagged for maintenance', { holders: [heldBy('flagged')] }, false],
  ['in maintenance', { inMaintenance: true }, false],
  ['granted', { work: { cordon: undefined, grant: 'Live' } }, false],
  ['staged', { progress: { kind: 'staged', actions: [] } }, false],
  [
    'at a target that it was not granted',
    { progress: { kind: 'updated', since: 1_000, withoutGrant: true } },
    false,
  ],
  ['proof of nothing', { liveFailure: { why: 'no such unit' } }, false],
])('a node that is %s', (_what, fields, expected) => {
  const state = aState('a', { progress, ...fields });
  expect(isSettled(state, 0, 2_000)).toBe(expected);
});

it('an update that has still to show that it holds keeps its node awake', () => {
  const updated = aState('a', { progress });
  expect(isSettled(updated, 5_000, 2_000)).toBe(false);
  expect(isSettled(updated, 5_000, 6_000)).toBe(true);
});

describe('a node is down because of its update since', () => {
  const PATIENCE = 1_000;
  const updated: NodeState['update']['progress'] = { kind: 'updated', startedAt: 10_000, since: 20_000 };
  it.each<[string, StateFields, number | undefined]>([
    ['never, if it is Ready', { ready: true }, undefined],
    ['never, if it was down before', { notReadySince: 9_000 }, undefined],
    ['it went down within the patience', { notReadySince: 21_000 }, 21_000],
    ['never, if it went down later', { notReadySince: 21_001 }, undefined],
    ['its update ended, if it has not been Ready since', { notReadySince: 12_000, work: granted }, 20_000],
    ['its update ended, if it is cordoned still', { notReadySince: 30_000, work: cordoned }, 20_000],
    [
      'it went down, if its update goes on',
      { progress: reboot, work: granted, notReadySince: 12_000 },
      12_000,
    ],
    ['never, if nothing was granted', { progress: reboot, notReadySince: 12_000 }, undefined],
    ['never, if it has another target', { assigned: false, notReadySince: 21_000 }, undefined],
  ])('%s', (_what, more, since) => {
    const lease = { by: 'us', since: 10_000 } as const;
    const node = aState('a', { ready: false, progress: updated, lease, ...more });
    expect(downSince(node, PATIENCE)).toBe(since);
  });
});
