import { expect, test } from 'vitest';
import { condition, machineConfigNode, node, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { changedLines, formatStatus } from './status-text.ts';
import { statusView, viewOfPool } from './status-view.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const view = (nodes: readonly string[], builds: readonly string[]) =>
  statusView(
    observed({
      pools: [pool([condition('Updated', 'True', '', 'AllNodesUpdated')])],
      nodes: nodes.map((name) => node(name)),
      machineConfigNodes: nodes.map((name) => machineConfigNode(name)),
      builds: builds.map((name) => ({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineOSBuild',
        metadata: { name },
        spec: {
          machineOSConfig: { name: 'worker' },
          machineConfig: { name: 'rendered-worker-1' },
          renderedImagePushSpec: '',
        },
      })),
    }),
    NOW,
  );

test('without an earlier view, everything is printed', () => {
  expect(changedLines(undefined, view(['a'], ['b']))).toHaveLength(4);
});

test('equal views print nothing', () => {
  expect(changedLines(view(['a'], ['b']), view(['a'], ['b']))).toEqual([]);
});

test('a node that no longer exists is deleted, and a build that left the status is no longer in progress', () => {
  expect(
    changedLines(view(['a'], ['b']), view([], []))
      .slice(-2)
      .toSorted(),
  ).toEqual(['build b: no longer in progress', 'node a: deleted']);
});

test('what is tried is shown with its pool, and not with another one', () => {
  const tried = (name: string) => {
    const { metadata, ...object } = pool([
      condition('ChangeTried', 'True', `MachineConfig ${name} is undone at 10:15`),
    ]);
    return { ...object, metadata: { ...metadata, name } };
  };
  const pools = [tried('infra'), tried('worker'), pool([condition('ChangeTried', 'False')])];
  const all = statusView(observed({ pools }), NOW);
  const warnings = (of: typeof all) =>
    formatStatus(of, { wide: false, allNodes: false, now: NOW })
      .split('\n')
      .filter((line) => line.includes('undone'));
  const [infra, worker] = ['infra', 'worker'].map(
    (name) => `warning: pool ${name}: MachineConfig ${name} is undone at 10:15`,
  );
  expect(warnings(all)).toEqual([infra, worker]);
  expect(warnings(viewOfPool(all, 'infra'))).toEqual([infra]);
});
