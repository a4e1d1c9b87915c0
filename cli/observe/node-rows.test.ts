import { expect, test } from 'vitest';
import { machineConfigNode, node, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import type { NodeView } from '../../view/schemas.ts';
import { everyNode, nodeRows } from './node-rows.ts';
import { flagsOf } from './node-text.ts';
import { statusView } from './status-view.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const cluster = observed({
  pools: [pool([])],
  nodes: [node('any')],
  machineConfigNodes: [machineConfigNode('any')],
});
const [view] = statusView(cluster, NOW).nodes;
if (view === undefined) throw new Error('the node has no view');
const of = (name: string, state: NodeView['state'], more: Partial<NodeView> = {}): NodeView => ({
  ...view,
  name,
  state,
  cordoned: false,
  ready: true,
  ...more,
});
const namesOf = ({ groups }: ReturnType<typeof nodeRows>) =>
  groups.map(({ nodes }) => nodes.map(({ name }) => name).join('+'));

const nodes = [
  of('z', 'staged'),
  of('y', 'updated'),
  of('x', 'rebooting'),
  of('w', 'degraded'),
  of('a', 'staged'),
  of('b', 'draining'),
  of('c', 'degraded'),
  of('d', 'updated', { cordoned: true }),
];

test('failed nodes come first, then those at work, then those that wait for the same together, by name', () => {
  const rows = nodeRows(nodes, NOW);
  expect(namesOf(rows)).toEqual(['c', 'w', 'b', 'x', 'a+z', 'd']);
  expect(rows).toMatchObject({ more: 0, settled: 1 });
  expect(nodeRows(nodes.toReversed(), NOW)).toEqual(rows);
});

test('every node has a row of its own where all are asked for', () => {
  const rows = everyNode(nodes, NOW);
  expect(namesOf(rows)).toEqual(['c', 'w', 'b', 'x', 'a', 'z', 'd', 'y']);
  expect(rows).toMatchObject({ more: 0, settled: 0 });
});

test('of nodes at work fifty have a row, and every one that failed', () => {
  const many = (state: NodeView['state'], count: number) =>
    Array.from({ length: count }, (_, at) => of(`${state}-${String(at).padStart(3, '0')}`, state));
  expect(nodeRows(many('rebooting', 50), NOW)).toMatchObject({ more: 0, groups: { length: 50 } });
  const rows = nodeRows([...many('rebooting', 53), ...many('degraded', 60)], NOW);
  expect(rows).toMatchObject({ more: 3, groups: { length: 110 } });
  expect(namesOf(rows).slice(60, 62)).toEqual(['rebooting-000', 'rebooting-001']);
});

test.each<[Partial<NodeView>, string]>([
  [{ ready: true, cordoned: false }, ''],
  [{ ready: true, cordoned: true }, 'cordoned'],
  [{ ready: false, cordoned: false }, 'not ready'],
  [{ ready: false, cordoned: true }, 'not ready, cordoned'],
  [{ ready: false, notReady: 'disk is full' }, 'not ready: disk is full'],
  [{ ready: false, notReady: 'disk is full\nsee the log' }, 'not ready: disk is full …'],
])('a node with %j is flagged "%s"', (more, flags) => {
  expect(flagsOf(of('a', 'updated', more))).toBe(flags);
});
