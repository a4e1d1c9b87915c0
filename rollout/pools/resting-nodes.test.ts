import { expect, it } from 'vitest';
import { aState } from '../../test/fixtures/objects.ts';
import { mayRest } from './resting-nodes.ts';

const updated = aState('a', { progress: { kind: 'updated', since: 1_000 } });
it.each([
  ['updated and at rest', updated, true],
  ['not Ready', { ...updated, ready: false }, false],
  ['cordoned', { ...updated, schedulable: false }, false],
  ['on its way to another target', { ...updated, assigned: false }, false],
  ['under our lease', { ...updated, lease: { by: 'us' } as const }, false],
  ["under another's lease", { ...updated, lease: { by: 'other', holder: 'x' } as const }, false],
  ['with a lease that was left', { ...updated, lease: { by: 'nobody', left: true } as const }, false],
  ['flagged for maintenance', { ...updated, obstacle: 'flagged' }, false],
  ['in maintenance', { ...updated, inMaintenance: true }, false],
  ['granted', { ...updated, work: { cordon: undefined, grant: 'Live' as const } }, false],
  ['staged', { ...updated, progress: { kind: 'staged' as const, actions: [] } }, false],
])('a node that is %s', (_what, state, expected) => {
  expect(mayRest(state, 0, 2_000)).toBe(expected);
});

it('an update that has still to show that it holds keeps its node awake', () => {
  expect(mayRest(updated, 5_000, 2_000)).toBe(false);
  expect(mayRest(updated, 5_000, 6_000)).toBe(true);
});
