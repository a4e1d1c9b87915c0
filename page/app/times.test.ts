import { expect, test } from 'vitest';
import { clockTime, fullTime, offsetOf, shortTime, zonesFor } from './times.ts';

const NOW = Date.parse('2026-11-25T22:30:00Z');
const BERLIN = 'Europe/Berlin';

test.each([
  ['2026-11-25T22:45:10Z', 'UTC', '22:45'],
  ['2026-11-25T22:45:10Z', BERLIN, '23:45'],
  ['2026-11-25T23:15:00Z', BERLIN, 'Thu 26 Nov 00:15'],
  ['2026-11-28T21:00:00Z', BERLIN, 'Sat 28 Nov 22:00'],
  ['2027-01-02T21:00:00Z', 'UTC', 'Sat 2 Jan 2027 21:00'],
])('%s in %s is %s', (time, zone, text) => {
  expect(shortTime(Date.parse(time), zone, NOW)).toBe(text);
});

test('a time can have seconds, and its day and zone', () => {
  expect(clockTime(NOW + 10_000, BERLIN, 'seconds')).toBe('23:30:10');
  expect(clockTime(Date.parse('2026-11-25T23:00:00Z'), BERLIN, 'minutes')).toBe('00:00');
  expect(fullTime(NOW, BERLIN)).toBe('Wed 25 Nov 2026 23:30:00 Europe/Berlin');
});

test.each([
  ['UTC', 'UTC'],
  [BERLIN, 'UTC+1'],
  ['Asia/Kolkata', 'UTC+5:30'],
  ['America/St_Johns', 'UTC-3:30'],
])('%s is at %s', (zone, offset) => {
  expect(offsetOf(zone, NOW)).toBe(offset);
});

test("a viewer chooses between the browser's zone and UTC", () => {
  expect(zonesFor(BERLIN)).toEqual([BERLIN, 'UTC']);
  expect(zonesFor('Etc/UTC')).toEqual(['UTC']);
});
