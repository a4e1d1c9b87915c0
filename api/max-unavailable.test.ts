import { expect, it } from 'vitest';
import { maxUnavailable } from './max-unavailable.ts';

it.each([
  [undefined, 10, 1],
  [3, 10, 3],
  [0, 10, 1],
  [-2, 10, -2],
  ['-10%', 7, -1],
  ['+50%', 10, 5],
  ['1000%', 7, 70],
  ['25%', 10, 2],
  ['9%', 10, 1],
  ['0%', 10, 1],
  ['100%', 10, 10],
  ['29%', 100, 29],
  ['58%', 50, 29],
  ['5', 10, 1],
  ['many', 10, 1],
])('%j of %i nodes is %i', (setting, nodes, expected) => {
  expect(maxUnavailable(setting, nodes)).toBe(expected);
});
