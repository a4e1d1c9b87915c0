import { expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { type PinnedImagesReport, pinnedImagesStatus } from './report.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const object = (status?: MachineConfigNode['status']) =>
  ({ metadata: { name: 'a', generation: 3 }, spec: {}, status }) as unknown as MachineConfigNode;
const statusOf = (report: PinnedImagesReport, before?: MachineConfigNode['status']) =>
  pinnedImagesStatus(object(before), report, NOW).status ?? {};
const conditionsOf = (status: MachineConfigNode['status']) =>
  Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status: value, reason, message }) => [
      type.replace('PinnedImageSets', ''),
      `${value} ${reason}: ${message}`,
    ]),
  );

const failed: PinnedImagesReport = {
  kind: 'finished',
  sets: [
    { name: 'one', generation: 2, problem: 'no space' },
    { name: 'two', generation: 1 },
    { name: 'three', generation: 1, problem: 'no space' },
  ],
  problem: 'PinnedImageSet x of spec.pinnedImageSets does not exist',
};

test('a node that never had a PinnedImageSet has no word of them', () => {
  expect(pinnedImagesStatus(object(), { kind: 'none' }, NOW)).toEqual({
    status: undefined,
    isPartial: false,
  });
});

test('failures name their sets, and each set has its generations', () => {
  const status = statusOf(failed);
  expect(conditionsOf(status)).toEqual({
    Progressing: 'False Finished: Images of 1 PinnedImageSet are pinned',
    Degraded:
      'True NotPinned: PinnedImageSet x of spec.pinnedImageSets does not exist; PinnedImageSet one, three: no space',
  });
  expect(status.conditions?.every(({ observedGeneration }) => observedGeneration === 3)).toBe(true);
  expect(status.pinnedImageSets?.slice(0, 2)).toEqual([
    { name: 'one', desiredGeneration: 2, lastFailedGeneration: 2, lastFailedGenerationError: 'no space' },
    { name: 'two', desiredGeneration: 1, currentGeneration: 1 },
  ]);
});

test('a failure counts until the next try has ended, and what was pinned stays current', () => {
  const pinned = statusOf({ kind: 'finished', sets: [{ name: 'one', generation: 1 }] });
  const broken = statusOf(
    { kind: 'finished', sets: [{ name: 'one', generation: 2, problem: 'no space' }] },
    pinned,
  );
  const trying = statusOf(
    { kind: 'progressing', sets: [{ name: 'one', generation: 2 }], doing: 'Pulling image 1 of 1: a' },
    broken,
  );
  expect(conditionsOf(trying)).toEqual({
    Progressing: 'True Pulling: Pulling image 1 of 1: a',
    Degraded: 'True NotPinned: PinnedImageSet one: no space',
  });
  expect(trying.pinnedImageSets).toEqual([
    {
      name: 'one',
      desiredGeneration: 2,
      currentGeneration: 1,
      lastFailedGeneration: 2,
      lastFailedGenerationError: 'no space',
    },
  ]);
  const done = statusOf({ kind: 'finished', sets: [{ name: 'one', generation: 2 }] }, trying);
  expect(done.pinnedImageSets).toEqual([{ name: 'one', desiredGeneration: 2, currentGeneration: 2 }]);
  expect(conditionsOf(done)['Degraded']).toBe('False AsExpected: No image has failed');
});

test('a set that was created again is left out of one status, and is in the next', () => {
  const before = statusOf({ kind: 'finished', sets: [{ name: 'one', generation: 7 }] });
  const again: PinnedImagesReport = { kind: 'finished', sets: [{ name: 'one', generation: 1 }] };
  const first = pinnedImagesStatus(object(before), again, NOW);
  expect([first.isPartial, first.status?.pinnedImageSets]).toEqual([true, undefined]);
  const second = pinnedImagesStatus(object(first.status), again, NOW);
  expect([second.isPartial, second.status?.pinnedImageSets?.[0]?.currentGeneration]).toEqual([false, 1]);
});

test('without a PinnedImageSet the entries go, and the conditions say so', () => {
  const status = statusOf({ kind: 'none' }, statusOf(failed));
  expect(status.pinnedImageSets).toBeUndefined();
  expect(conditionsOf(status)).toEqual({
    Progressing: 'False NotRequired: The pool of the node has no PinnedImageSet',
    Degraded: 'False NotRequired: The pool of the node has no PinnedImageSet',
  });
});
