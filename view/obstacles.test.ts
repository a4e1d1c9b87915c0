import { expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import { annotations } from '../api/names.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { condition, machineConfigNode, node, observed } from '../test/fixtures/observed-cluster.ts';
import { obstaclesOf } from './obstacles.ts';

const warnings = (subject: Node, pool = 'worker', inMaintenance: readonly string[] = []) => {
  const machineConfigNodes = [machineConfigNode('a')];
  const cluster = observed({ nodes: [subject], machineConfigNodes, inMaintenance: new Set(inMaintenance) });
  return obstaclesOf(cluster, [pool], 0);
};
const down = { ...node('a', {}, true), status: { conditions: [condition('Ready', 'False')] } };

it('warns of nodes that a rollout skips, and of those that count towards maxUnavailable', () => {
  expect(warnings(node('a'))).toEqual([]);
  expect(warnings(down, 'worker', ['a'])).toEqual(['node a is skipped: a NodeMaintenance is active']);
  expect(warnings(down)).toEqual(['node a is skipped: cordoned, and not by Shale']);
  const lost = { ...node('a'), status: down.status };
  expect(warnings(lost)).toEqual(['node a already counts towards maxUnavailable: not Ready']);
});

it('warns otherwise of a cordoned node whose pool wants it updated', () => {
  const machineConfigNodes = [machineConfigNode('a')];
  const cluster = observed({
    nodes: [node('a', {}, true)],
    machineConfigNodes,
    pools: [aPool('worker', { shale: { updateCordoned: true } })],
  });
  expect(obstaclesOf(cluster, ['worker'], 0)).toEqual([
    'node a already counts towards maxUnavailable: cordoned',
  ]);
});

it('says nothing of a node whose host is not supported, which is in no rollout', () => {
  const conditions = [condition('NodeDegraded', 'True', 'bootc: no ostree', 'UnsupportedHost')];
  const cluster = observed({
    nodes: [down, node('b')],
    machineConfigNodes: [machineConfigNode('a', { conditions }), machineConfigNode('b')],
  });
  expect(obstaclesOf(cluster, ['worker'], 0)).toEqual([]);
});

it('does not warn of a node that Shale updates, or of another pool', () => {
  expect(warnings(node('a', { [annotations.cordonedByShale]: 'true' }, true))).toEqual([]);
  expect(warnings(down, 'infra')).toEqual([]);
});
