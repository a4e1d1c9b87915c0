import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { sourceOf } from './pool-source.ts';

const pool = (annotations: Record<string, string>) =>
  ({ metadata: { name: 'worker', annotations } }) as unknown as MachineConfigPool;

test.each<[string, Record<string, string>, object]>([
  ['nothing', {}, {}],
  [
    'a repository and a commit',
    { 'shale.dev/source-url': 'https://git.example.com/nodes', 'shale.dev/source-revision': 'abc' },
    { url: 'https://git.example.com/nodes', revision: 'abc' },
  ],
  [
    'credentials in the URL',
    { 'shale.dev/source-url': 'https://robot:token@git.example.com/nodes' },
    { url: 'https://git.example.com/nodes' },
  ],
  ['an empty one', { 'shale.dev/source-revision': '' }, {}],
  ['line breaks', { 'shale.dev/source-revision': 'a\nb' }, {}],
  ['a text of any length', { 'shale.dev/source-revision': 'a'.repeat(513) }, {}],
])('of %s', (_name, annotations, expected) => {
  expect(sourceOf(pool(annotations))).toEqual(expected);
});

test('a pool that is gone has none', () => {
  expect(sourceOf(undefined)).toEqual({});
});
