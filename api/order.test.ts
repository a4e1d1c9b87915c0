import fc from 'fast-check';
import { expect, test } from 'vitest';
import { by, byCodeUnits } from './order.ts';

test('orders texts by code units, whatever the locale', () => {
  expect(['ä', 'b', 'Z', 'a', 'a10', 'a9'].sort(byCodeUnits)).toEqual(['Z', 'a', 'a10', 'a9', 'b', 'ä']);
  fc.assert(
    fc.property(fc.array(fc.string()), (texts) => {
      expect(texts.toSorted(byCodeUnits)).toEqual(texts.toSorted());
    }),
  );
});

test('equal texts compare as equal, so that a stable sort keeps their order', () => {
  expect(byCodeUnits('a', 'a')).toBe(0);
  expect([byCodeUnits('a', 'b'), byCodeUnits('b', 'a')]).toEqual([-1, 1]);
});

test('orders items by a key, texts and numbers', () => {
  const items = [
    { name: 'b', size: 10 },
    { name: 'a', size: 9 },
  ];
  expect(items.toSorted(by(({ name }) => name)).map(({ name }) => name)).toEqual(['a', 'b']);
  expect(items.toSorted(by(({ size }) => size)).map(({ size }) => size)).toEqual([9, 10]);
  expect(
    [
      ...new Map([
        ['y', 1],
        ['x', 2],
      ]),
    ].sort(by(([name]) => name)),
  ).toEqual([
    ['x', 2],
    ['y', 1],
  ]);
});

test('a later key decides between equal items, and items equal in every key keep their order', () => {
  const items = [
    ['b', 2, 'first'],
    ['a', 2, ''],
    ['b', 1, ''],
    ['b', 2, 'second'],
  ] as const;
  const sorted = items.toSorted(
    by(
      ([name]) => name,
      ([, size]) => size,
    ),
  );
  expect(sorted.map((item) => item.join(' '))).toEqual(['a 2 ', 'b 1 ', 'b 2 first', 'b 2 second']);
});
