import { Command } from 'commander';
import { expect, test } from 'vitest';
import { parseLabelSelector } from '../../api/label-selector.ts';
import { aBuild, aMachineConfigNode, aNode, aPool } from '../../test/fixtures/objects.ts';
import { observed } from '../../test/fixtures/observed-cluster.ts';
import { selected, selectsNothing, withSelector } from './selected.ts';

const labelled = (name: string, zone: string) => aNode(name, { metadata: { name, labels: { zone } } });
const build = aBuild('worker-1', 'rendered-worker-1');
const cluster = observed({
  nodes: [labelled('a', 'east'), labelled('b', 'west'), aNode('c')],
  machineConfigNodes: ['a', 'b', 'c'].map((name) =>
    aMachineConfigNode(name, { pool: { name: name === 'a' ? 'infra' : 'worker' } }),
  ),
  pools: [aPool('infra'), aPool('worker'), aPool('empty')],
  builds: [build],
});

const namesOf = (objects: readonly { readonly metadata: { readonly name: string } }[]) =>
  objects.map(({ metadata }) => metadata.name);

test.each<[string, string[], string[], number]>([
  ['zone=east', ['a'], ['infra'], 0],
  ['zone=west', ['b'], ['worker'], 1],
  ['zone in (east,west)', ['a', 'b'], ['infra', 'worker'], 1],
  ['!zone', ['c'], ['worker'], 1],
  ['zone=north', [], [], 0],
])('%s selects nodes with their pools and builds', (text, nodes, pools, builds) => {
  const found = selected(cluster, parseLabelSelector(text));
  expect(namesOf(found.nodes)).toEqual(nodes);
  expect(namesOf(found.machineConfigNodes)).toEqual(nodes);
  expect(namesOf(found.pools)).toEqual(pools);
  expect(found.builds).toHaveLength(builds);
});

test('without a selector everything is there', () => {
  expect(selected(cluster, undefined)).toBe(cluster);
});

test.each([
  ['zone=east', []],
  ['zone=north', ['no node has the labels of --selector']],
])('what %s does not select is said', (text, expected) => {
  const selector = parseLabelSelector(text);
  expect(selectsNothing(selected(cluster, selector), selector)).toEqual(expected);
  expect(selectsNothing(observed({}), undefined)).toEqual([]);
});

test('a selector that is none is a mistake of usage', () => {
  const command = withSelector(new Command('list'), 'only nodes with these labels').exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  expect(() => command.parse(['-l', 'zone=='.concat('=')], { from: 'user' })).toThrow(
    'unable to parse requirement',
  );
});
