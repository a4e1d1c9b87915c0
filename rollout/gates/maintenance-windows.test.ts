import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readWindows } from '../../api/pool-settings/values.ts';
import { windowEnd, windowState } from './maintenance-windows.ts';

const windows = (...list: Parameters<typeof readWindows>[0]) => readWindows(list);
const at = (time: string) => Date.parse(time);
const saturday = { schedule: '0 22 * * 6', duration: '4h', timeZone: 'Europe/Berlin' };

describe('a window on Saturday night in Berlin', () => {
  it.each([
    ['a second before', '2026-11-21T20:59:59Z', { open: false, opensAt: at('2026-11-21T21:00:00Z') }],
    ['as it opens', '2026-11-21T21:00:00Z', { open: true }],
    ['past midnight', '2026-11-22T00:59:59Z', { open: true }],
    ['as it closes', '2026-11-22T01:00:00Z', { open: false, opensAt: at('2026-11-28T21:00:00Z') }],
    ['in summer time', '2026-07-04T20:00:00Z', { open: true }],
  ])('%s', (_what, time, state) => {
    expect(windowState(windows(saturday), at(time))).toEqual(state);
  });
});

it('the earliest of several windows counts, and UTC where none is named', () => {
  const both = windows(saturday, { schedule: '30 3 * * 1-5', duration: '1h30m' });
  expect(windowState(both, at('2026-11-23T03:29:00Z'))).toEqual({
    open: false,
    opensAt: at('2026-11-23T03:30:00Z'),
  });
  expect(windowState(both, at('2026-11-23T04:59:59Z'))).toEqual({ open: true });
});

it.each([
  ['while it is closed', [saturday], '2026-11-21T20:59:59Z', undefined],
  ['while it is open', [saturday], '2026-11-21T23:00:00Z', '2026-11-22T01:00:00Z'],
  [
    'with another one that opens before',
    [saturday, { schedule: '0 0 * * 0', duration: '3h' }],
    '2026-11-21T23:00:00Z',
    '2026-11-22T03:00:00Z',
  ],
  [
    'with another one that opens as it closes',
    [saturday, { schedule: '0 1 * * 0', duration: '1h' }],
    '2026-11-21T23:00:00Z',
    '2026-11-22T02:00:00Z',
  ],
  ['that never closes', [{ schedule: '0 * * * *', duration: '1h' }], '2026-11-21T23:00:00Z', undefined],
])('the end of a window %s', (_what, list, time, end) => {
  expect(windowEnd(windows(...list), at(time))).toBe(end === undefined ? undefined : at(end));
});

it('no window at all never opens', () => {
  expect(windowState([], 0)).toEqual({ open: false, opensAt: undefined });
});

it.each([
  ['six fields', [{ ...saturday, schedule: '0 0 22 * * 6' }], /window 1: .*5 parts/],
  ['a day that never comes', [{ ...saturday, schedule: '0 0 30 2 *' }], /never comes/],
  ['no such place', [{ ...saturday, timeZone: 'Mars/Olympus' }], /Mars\/Olympus/],
  ['no length', [saturday, { ...saturday, duration: '0h' }], /window 2: "0h": expected more/],
])('%s is refused', (_what, list, why) => {
  expect(() => readWindows(list)).toThrow(why);
});

it('a closed window is open when it says, and not a moment before', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 59 }),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 1, max: 600 }),
      fc.constantFrom('Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'UTC'),
      fc.integer({ min: at('2026-01-01T00:00:00Z'), max: at('2027-01-01T00:00:00Z') }),
      (minute, hour, length, timeZone, now) => {
        const daily = windows({ schedule: `${minute} ${hour} * * *`, duration: `${length}m`, timeZone });
        const state = windowState(daily, now);
        if (state.open) return;
        expect(state.opensAt).toBeGreaterThan(now);
        expect(windowState(daily, state.opensAt ?? 0).open).toBe(true);
        expect(windowState(daily, (state.opensAt ?? 0) - 1).open).toBe(false);
      },
    ),
  );
});
