import { expect, test } from 'vitest';
import { clusterFlagsIn, namesOrNone } from './names.ts';

test.each<[string[], object]>([
  [[], {}],
  [['history', ''], {}],
  [['--context', 'x', 'history', ''], { context: 'x' }],
  [['history', '--kubeconfig=k', '--context=x', '--context', 'y', ''], { kubeconfig: 'k', context: 'y' }],
  [['status', '--as', 'jane', '--as-group', 'a', '--as-group=b', ''], { as: 'jane', asGroup: ['a', 'b'] }],
  [['status', '--as-group', 'a', ''], {}],
  [['status', '--context', ''], {}],
])('the words %j name the cluster %j', (words, flags) => {
  expect(clusterFlagsIn(words)).toEqual(flags);
});

test('a cluster that is not there has no names', async () => {
  expect(await namesOrNone('pools', ['--kubeconfig', '/nothing/here'])).toEqual([]);
});
