import { expect, test } from 'vitest';
import type { NodeRow } from '../../model/view.ts';
import type { Member } from './cell-grid.tsx';
import { tally } from './tally.ts';

const member = (name: string, state: NodeRow['state'], more: Partial<NodeRow> = {}): Member => [
  name,
  { pool: 'worker', state, config: { desired: '' }, ready: true, cordoned: false, ...more },
];
const members = [
  member('a', 'updated'),
  member('b', 'degraded', { ready: false }),
  member('c', 'updated', { obstacle: 'disk swap' }),
  member('d', 'degraded'),
  member('e', 'rebooting', { ready: false }),
];

test('nodes are counted by state, failed ones first, and by mark', () => {
  expect(tally(members, undefined)).toEqual({
    states: [
      { kind: 'degraded', count: 2, next: 'b' },
      { kind: 'rebooting', count: 1, next: 'e' },
      { kind: 'updated', count: 2, next: 'a' },
    ],
    marks: [
      { kind: 'not-ready', count: 1, next: 'b' },
      { kind: 'skipped', count: 1, next: 'c' },
    ],
  });
});

test.each([
  ['a', 'b'],
  ['b', 'd'],
  ['c', 'd'],
  ['d', 'b'],
  ['elsewhere', 'b'],
])('after %s the next failed node is %s', (selected, next) => {
  expect(tally(members, selected).states[0]?.next).toBe(next);
});

test('no nodes have no states', () => {
  expect(tally([], undefined)).toEqual({ states: [], marks: [] });
});
