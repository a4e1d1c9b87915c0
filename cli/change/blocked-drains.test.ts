import { expect, test } from 'vitest';
import type { Pod, PodDisruptionBudget } from '../../api/kubernetes.ts';
import type { NodePrediction } from '../../predict/node/predict-node.ts';
import { machineConfigNode } from '../../test/fixtures/observed-cluster.ts';
import { blockedDrains } from './blocked-drains.ts';

const budget = (selector?: PodDisruptionBudget['spec']['selector']): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'db', namespace: 'shop' },
  spec: selector === undefined ? {} : { selector },
  status: { disruptionsAllowed: 0 },
});
const pod = (name: string, nodeName: string, labels: Record<string, string> = { app: 'db' }): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', labels },
  spec: { nodeName, containers: [] },
});
const node = (name: string, prediction: NodePrediction) => ({ node: machineConfigNode(name), prediction });
const nodes = [node('a', { kind: 'reboots', why: 'x' }), node('b', { kind: 'arrived' })];

test('a node that reboots is named with each pod that a budget keeps there now', () => {
  const pods = [pod('db-0', 'a'), pod('db-1', 'b'), pod('web-0', 'a', { app: 'web' })];
  const selector = { matchLabels: { app: 'db' } };
  expect(blockedDrains(nodes, [{ budget: budget(selector), pods }])).toEqual([
    "node a can't be drained now: PodDisruptionBudget shop/db allows no disruption of pod db-0",
  ]);
  expect(blockedDrains(nodes, [{ budget: budget(), pods }])).toEqual([]);
});
