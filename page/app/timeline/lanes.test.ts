import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { present } from '../../../api/present.ts';
import type { SegmentRow } from '../../model/view.ts';
import { lanesOf, lastRollout, summarise, ticks, updatesOf, withNames } from './lanes.ts';

const MINUTE = 60_000;
const segment = (node: string, kind: SegmentRow['kind'], start: number, end?: number): SegmentRow => ({
  node,
  pool: 'worker',
  kind,
  start,
  ...present({ end }),
});

test('a drain and the following reboot are one update, and the next update is another', () => {
  const updates = updatesOf(
    [
      segment('a', 'reboot', 40_000, 90_000),
      segment('a', 'drain', 0, 40_000),
      segment('a', 'live', 10 * MINUTE),
      segment('b', 'live', 5_000, 6_000),
    ],
    11 * MINUTE,
  );
  expect(updates.map(({ node, start, end, segments }) => [node, start, end, segments.length])).toEqual([
    ['a', 0, 90_000, 2],
    ['b', 5_000, 6_000, 1],
    ['a', 10 * MINUTE, 11 * MINUTE, 1],
  ]);
});

test('no updates in a lane overlap, and every update is in a lane', () => {
  const update = fc
    .record({ start: fc.integer({ min: 0, max: 1e6 }), length: fc.integer({ min: 0, max: 1e5 }) })
    .map(({ start, length }) => ({ node: 'n', start, end: start + length, segments: [] }));
  fc.assert(
    fc.property(fc.array(update), (given) => {
      const updates = given.toSorted((a, b) => a.start - b.start);
      const lanes = lanesOf(updates);
      expect(lanes.flat()).toHaveLength(updates.length);
      for (const lane of lanes) {
        lane.slice(1).forEach(({ start }, index) => {
          expect(start).toBeGreaterThan(lane[index]?.end ?? Number.NaN);
        });
      }
    }),
  );
});

test('a name is within its bar, else behind it, or before one that ends with the chart', () => {
  const updates = updatesOf(
    [
      segment('wide', 'reboot', 0, 100),
      segment('short', 'live', 10, 20),
      segment('late', 'live', 980),
      segment('early', 'reboot', -900, 20),
    ],
    1_000,
  );
  const named = withNames(updates, { from: 0, to: 1_000 }, () => 50);
  expect(named.map(({ update, name, start, end }) => [update.node, name, start, end])).toEqual([
    ['early', 'after', 0, 70],
    ['wide', 'within', 0, 100],
    ['short', 'after', 10, 70],
    ['late', 'before', 930, 1_000],
  ]);
});

describe('the last rollout', () => {
  test('starts after a long pause, and extends to now while a node is updating', () => {
    const now = 200 * MINUTE;
    const segments = [
      segment('a', 'reboot', 10 * MINUTE, 12 * MINUTE),
      segment('a', 'reboot', 100 * MINUTE, 103 * MINUTE),
      segment('b', 'reboot', 110 * MINUTE, 112 * MINUTE),
    ];
    const { from, to } = lastRollout(segments, now);
    expect([Math.round(from / MINUTE), Math.round(to / MINUTE)]).toEqual([100, 112]);
    const going = lastRollout([...segments, segment('c', 'drain', 120 * MINUTE)], now);
    expect(Math.round(going.from / MINUTE)).toBeLessThanOrEqual(100);
    expect(going.to).toBe(now);
  });

  test('has a minimum width', () => {
    const { from, to } = lastRollout([segment('a', 'live', 1e9, 1e9 + 500)], 2e9);
    expect(to - from).toBeGreaterThanOrEqual(3 * MINUTE);
  });
});

test('a summary counts completed updates, with medians', () => {
  const segments = [
    segment('a', 'drain', 0, 10),
    segment('b', 'drain', 0, 30),
    segment('c', 'drain', 0, 20),
    segment('d', 'reboot', 0),
  ];
  expect(summarise(segments)).toEqual([{ kind: 'drain', count: 3, medianMs: 20 }]);
});

test('ticks are at round times within the span', () => {
  expect(ticks(61_000, 5 * MINUTE, 5)).toEqual([2 * MINUTE, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE]);
});
