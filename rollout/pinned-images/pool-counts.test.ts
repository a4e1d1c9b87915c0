import { describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { aMachineConfigNode } from '../../test/fixtures/objects.ts';
import { pinnedImagesCounts } from './pool-counts.ts';

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

const countsOf = (
  nodes: readonly MachineConfigNode[],
  machineCount: number,
  unavailable: readonly string[] = [],
) => pinnedImagesCounts(nodes)({ machineCount, unavailable }).poolSynchronizersStatus;

describe('the counts of pinned images', () => {
  it('are of nodes that have the generations that are asked for', () => {
    expect(countsOf([keeper('a', 2), keeper('b', 1), keeper('c')], 3)?.[0]?.updatedMachineCount).toBe(1);
  });

  it('have no node where something is missing in the cluster', () => {
    const node = aMachineConfigNode('a', { pinnedImages: { sets: [], problem: 'no such set' } });
    expect(countsOf([node], 1)?.[0]?.updatedMachineCount).toBe(0);
  });

  it('are absent where no node has to keep images', () => {
    expect(pinnedImagesCounts([])({ machineCount: 3, unavailable: [] })).toEqual({});
  });

  it.each([
    [['a', 'b'], 3, [], [3, 2, 2, 3, 0]],
    [['a', 'b'], 3, ['b', 'c'], [3, 2, 1, 1, 2]],
    [[], 2, ['a', 'b'], [2, 0, 0, 0, 2]],
    [['a'], 1, [], [1, 1, 1, 1, 0]],
  ])('with %j of %i nodes, %j unavailable, are %j', (pinned, machineCount, unavailable, counts) => {
    const [all, updated, ready, available, not] = counts;
    // A node of the pool that has to keep images and has none of them.
    const nodes = [...pinned.map((name) => keeper(name, 2)), keeper('z')];
    expect(countsOf(nodes, machineCount, unavailable)).toEqual([
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
