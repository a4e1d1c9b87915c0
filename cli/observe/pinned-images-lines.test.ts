import { expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { PinnedImageSetState } from '../../api/pinned-image-set.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { formatStatus } from './status-text.ts';
import { statusView } from './status-view.ts';

const ASKED = { sets: [{ name: 'till', generation: 2 }], containerRuntime: 'cri-o' as const };

function keeper(name: string, state?: Omit<PinnedImageSetState, 'name'>, failed?: string): MachineConfigNode {
  const conditions = failed === undefined ? [] : [condition('PinnedImageSetsDegraded', 'True', failed)];
  const pinnedImageSets = state === undefined ? [] : [{ name: 'till', ...state }];
  return machineConfigNode(name, { conditions, pinnedImageSets }, { pinnedImages: ASKED });
}
const done = keeper('a', { desiredGeneration: 2, currentGeneration: 2 });
const earlier = keeper('b', { desiredGeneration: 2, currentGeneration: 1 });

test.each<[string, readonly MachineConfigNode[], string[]]>([
  ['no node has to keep images', [machineConfigNode('a')], []],
  ['every node has them', [done, machineConfigNode('c')], []],
  [
    'a node has an earlier generation',
    [done, earlier],
    ['pool worker: pinned images are complete on 1 of 2 nodes'],
  ],
  ['a node has reported nothing', [keeper('a')], ['pool worker: pinned images are complete on 0 of 1 node']],
  [
    'a node says why not',
    [done, keeper('b', { desiredGeneration: 2 }, 'too little space')],
    ['pool worker: pinned images are complete on 1 of 2 nodes; b: too little space'],
  ],
  [
    'the cluster does not know the runtime',
    [machineConfigNode('a', undefined, { pinnedImages: { sets: [], problem: 'x' } })],
    ['pool worker: pinned images are complete on 0 of 1 node'],
  ],
  [
    'many nodes say why not',
    ['a', 'b', 'c', 'd', 'e'].map((name) => keeper(name, undefined, 'full')),
    ['pool worker: pinned images are complete on 0 of 5 nodes; a: full; b: full; c: full; and 2 more nodes'],
  ],
])('the line where %s', (_, members, lines) => {
  const cluster = observed({ pools: [pool([condition('Updated', 'True')])], machineConfigNodes: members });
  const text = formatStatus(statusView(cluster, 0), { wide: false, allNodes: false, now: 0 });
  expect(text.split('\n').filter((line) => line.includes('pinned images'))).toEqual(lines);
});

test('is part of the status of a pool, also of one that is Updated', () => {
  const cluster = observed({
    pools: [pool([condition('Updated', 'True')])],
    machineConfigNodes: [done, earlier],
  });
  const view = statusView(cluster, 0);
  expect(view.pools[0]?.pinnedImages).toEqual({ nodes: 2, complete: 1, problems: [] });
  expect(formatStatus(view, { wide: false, allNodes: false, now: 0 })).toContain(
    'pool worker: pinned images are complete on 1 of 2 nodes',
  );
});
