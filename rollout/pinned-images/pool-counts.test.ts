import { describe, expect, it } from 'vitest';
import { aMachineConfigNode } from '../../test/fixtures/objects.ts';
import { pinnedImagesCounts, pinnedNodes } from './pool-counts.ts';

const sets = [{ name: 'till', generation: 2 }];
const has = (generation: number) => ({
  pinnedImageSets: [{ name: 'till', desiredGeneration: 2, currentGeneration: generation }],
});
const keeper = (name: string, generation?: number) =>
  aMachineConfigNode(
    name,
    { pinnedImages: { sets } },
    generation === undefined ? undefined : has(generation),
  );

describe('the nodes with all of their pinned images', () => {
  it('are those that have the generations that are asked for', () => {
    expect(pinnedNodes([keeper('a', 2), keeper('b', 1), keeper('c')])).toEqual(new Set(['a']));
  });

  it('are none where something is missing in the cluster', () => {
    const node = aMachineConfigNode('a', { pinnedImages: { sets: [], problem: 'no such set' } });
    expect(pinnedNodes([node])).toEqual(new Set());
  });

  it('are not counted where no node of the pool has to keep images', () => {
    expect(pinnedNodes([])).toBeUndefined();
  });
});

describe('the counts of pinned images', () => {
  it('are absent where no node has to keep images', () => {
    expect(pinnedImagesCounts(undefined, 3, [])).toEqual({});
  });

  it.each([
    [['a', 'b'], 3, [], [3, 2, 2, 3, 0]],
    [['a', 'b'], 3, ['b', 'c'], [3, 2, 1, 1, 2]],
    [[], 2, ['a', 'b'], [2, 0, 0, 0, 2]],
    [['a'], 1, [], [1, 1, 1, 1, 0]],
  ])('with %j of %i nodes, %j unavailable, are %j', (pinned, machineCount, unavailable, counts) => {
    const [all, updated, ready, available, not] = counts;
    expect(pinnedImagesCounts(new Set(pinned), machineCount, unavailable).poolSynchronizersStatus).toEqual([
      {
        poolSynchronizerType: 'PinnedImageSets',
        machineCount: all,
        updatedMachineCount: updated,
        readyMachineCount: ready,
        availableMachineCount: available,
        unavailableMachineCount: not,
      },
    ]);
  });
});
