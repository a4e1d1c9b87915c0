import { expect, test } from 'vitest';
import { BaseImages, isMovable } from './observe.ts';

const [ONE, TWO] = ['1', '2'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
const TAG = 'r.example.com/os/stock:1';

function setUp() {
  let now = 0;
  const stale: string[] = [];
  const bases = new BaseImages({ freshMs: 100, now: () => now, onStale: (image) => stale.push(image) });
  return {
    bases,
    stale,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('an image by digest is what it is', async () => {
  const { bases } = setUp();
  const image = `r.example.com/os/stock@${ONE}`;
  expect(isMovable(image)).toBe(false);
  expect(await bases.resolve(image, () => Promise.reject(new Error('nobody asks')))).toBe(image);
});

test('a tag is looked up again when what is known of it is old', async () => {
  const { bases, pass } = setUp();
  expect(isMovable(TAG)).toBe(true);
  expect(await bases.resolve(TAG, async () => ONE)).toBe(`${TAG}@${ONE}`);
  pass(99);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${ONE}`);
  pass(1);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${TWO}`);
});

test('what is known counts on while the registry is away, and is asked for again', async () => {
  const { bases, pass, stale } = setUp();
  const away = () => Promise.reject(new Error('away'));
  await expect(bases.resolve(TAG, away)).rejects.toThrow('away');
  await bases.resolve(TAG, async () => ONE);
  pass(100);
  expect(await bases.resolve(TAG, away)).toBe(`${TAG}@${ONE}`);
  expect(stale).toEqual([TAG]);
  expect(await bases.resolve(TAG, async () => TWO)).toBe(`${TAG}@${TWO}`);
});
