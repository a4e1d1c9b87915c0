import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { aMachineConfigNode, aNode, aPool } from '../test/fixtures/objects.ts';
import { disputeOn, isAvailable, nodesOfPool } from './observed-cluster.ts';

const selecting = (name: string): MachineConfigPool =>
  aPool(name, { nodeSelector: { matchLabels: { [name]: '' } } });
const pools = [aPool('worker'), selecting('infra'), selecting('storage')];
const labelled = (...labels: string[]) => {
  const all = ['node-role.kubernetes.io/worker', ...labels];
  return aNode('a', { metadata: { name: 'a', labels: Object.fromEntries(all.map((label) => [label, ''])) } });
};

test('a node that two custom pools select is in none of them, and what to do is said', () => {
  const why = disputeOn({ nodes: [labelled('infra', 'storage')], pools }, 'a');
  expect(why).toMatch(/^it is in no pool, because custom pools infra and storage both select it; /);
});

test.each([
  ['the pool worker', [labelled()]],
  ['one custom pool and worker', [labelled('infra')]],
  ['no pool', [aNode('a', { metadata: { name: 'a', labels: {} } })]],
])('nothing is wrong with a node that is selected by %s', (_by, nodes) => {
  expect(disputeOn({ nodes, pools }, 'a')).toBeUndefined();
});

test('nothing is said of a node that does not exist', () => {
  expect(disputeOn({ nodes: [labelled('infra', 'storage')], pools }, 'b')).toBeUndefined();
});

test("a pool's nodes are its own, by name", () => {
  const of = (name: string, pool: string) => aMachineConfigNode(name, { pool: { name: pool } });
  const machineConfigNodes = [of('c', 'worker'), of('a', 'worker'), of('b', 'infra')];
  expect(nodesOfPool({ machineConfigNodes }, 'worker').map(({ metadata }) => metadata.name)).toEqual([
    'a',
    'c',
  ]);
});

test.each([
  [undefined, false],
  [{}, false],
  [{ availableReplicas: 0 }, false],
  [{ availableReplicas: 1 }, true],
])('a Deployment with status %j is available: %s', (status, expected) => {
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'a', namespace: 'ns' },
    status,
  } as Parameters<typeof isAvailable>[0];
  expect(isAvailable(deployment)).toBe(expected);
  expect(isAvailable(undefined)).toBe(false);
});
