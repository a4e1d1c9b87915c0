import { expect, test } from 'vitest';
import { aPool, someSettings } from '../../test/fixtures/objects.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { poolHold } from './gates.ts';

const closedBy = (spec: Parameters<typeof aPool>[1], settings: Partial<PoolSettings>) =>
  poolHold({ pool: aPool('worker', spec), settings: someSettings(settings) })?.message;

test.each([
  ['nothing', {}, undefined],
  ['the pool alone', { paused: true }, 'the pool is paused'],
])('a pool is closed by %s that is set', (_what, spec, expected) => {
  expect(closedBy(spec, {})).toBe(expected);
});

test('what the cluster’s admin has set comes first, then the pause, then a setting that can’t be read', () => {
  expect(closedBy({ paused: true }, { closed: 'unreadable', suspended: 'suspended' })).toBe('suspended');
  expect(closedBy({ paused: true }, { closed: 'unreadable' })).toBe('the pool is paused');
  expect(closedBy({}, { closed: 'unreadable' })).toBe('unreadable');
});
