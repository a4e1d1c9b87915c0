import { expect, it } from 'vitest';
import { inParallel } from './in-parallel.ts';

it('works on no more than the limit at once, and on every item', async () => {
  let active = 0;
  let most = 0;
  const seen: number[] = [];
  await inParallel([1, 2, 3, 4, 5], 2, async (item) => {
    active += 1;
    most = Math.max(most, active);
    await Promise.resolve();
    seen.push(item);
    active -= 1;
  });
  expect(most).toBe(2);
  expect(seen.toSorted()).toEqual([1, 2, 3, 4, 5]);
});

it('gives every item its turn before it fails', async () => {
  const seen: number[] = [];
  const odd = async (item: number) => {
    seen.push(item);
    if (item % 2 === 1) throw new Error(`odd: ${item}`);
  };
  await expect(inParallel([1, 2, 3], 1, odd)).rejects.toThrow('odd: 1; odd: 3');
  await expect(inParallel([1, 2], 1, odd)).rejects.toThrow('odd: 1');
  expect(seen).toEqual([1, 2, 3, 1, 2]);
});
