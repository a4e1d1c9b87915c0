import { expect, test } from 'vitest';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import { aMachineConfigNode, aPool, condition } from '../../../test/fixtures/objects.ts';
import { lookAtRollout, type RolloutGoal, type RolloutObservation } from './rollout-look.ts';

const yes = (type: string, message = '') => condition(type, 'True', message);

const pool = {
  ...aPool('worker', { configuration: { name: 'rendered-worker-2' } }),
  status: { configuration: { name: 'rendered-worker-2' }, conditions: [yes('Updated')] },
};

function node(name: string, current: string, conditions = [yes('Updated')]): MachineConfigNode {
  const configVersion = { current, desired: 'rendered-worker-2' };
  return aMachineConfigNode(name, { configVersion }, { mode: 'Standard', configVersion, conditions });
}

const goal: RolloutGoal = { pools: { worker: 2 }, mode: 'Standard', missingInConfig: () => undefined };
const two = [node('a', 'rendered-worker-2'), node('b', 'rendered-worker-2')];

test('is met when every node and the pool say so', () => {
  expect(lookAtRollout(goal, { pools: [pool], machineConfigNodes: two, builds: [] })).toEqual({ met: two });
});

const waiting = { pools: [pool], machineConfigNodes: two, builds: [] };
const unmet: readonly (readonly [string, RolloutObservation, RolloutGoal, string])[] = [
  ['no pool', { ...waiting, pools: [] }, goal, 'worker: no config is rendered yet'],
  [
    'an old node',
    { ...waiting, machineConfigNodes: [node('a', 'rendered-worker-1'), node('b', 'rendered-worker-2')] },
    goal,
    'worker: 1/2 nodes',
  ],
  ['another mode', waiting, { ...goal, mode: 'Layered' as const }, 'worker: 0/2 nodes'],
  [
    'an old rendering',
    waiting,
    { ...goal, missingInConfig: () => 'not rendered yet' },
    'worker: not rendered yet',
  ],
  [
    'a pool that does not say so',
    { ...waiting, pools: [{ ...pool, status: { conditions: [] } }] },
    goal,
    'worker: the pool is not Updated yet',
  ],
];
test.for(unmet)('is not met by %s', ([, seen, wanted, expected]) => {
  expect(lookAtRollout(wanted, seen)).toMatchObject({ seen: expected });
});

test('reports the part of all nodes that is done', () => {
  const half = [node('a', 'rendered-worker-1'), node('b', 'rendered-worker-2')];
  expect(lookAtRollout(goal, { ...waiting, machineConfigNodes: half })).toMatchObject({ part: 0.5 });
});

test('ends the wait when a node is degraded', () => {
  const degraded = node('a', 'rendered-worker-1', [yes('NodeDegraded', 'disk full')]);
  const seen = { ...waiting, machineConfigNodes: [degraded] };
  expect(() => lookAtRollout(goal, seen)).toThrow('node a is degraded: disk full');
});
