import { describe, expect, test } from 'vitest';
import { dataPatch, type EnableRequest, meaningOf, switchedOff, switchedOn } from './switch-data.ts';

const REPOSITORY = 'r.example.com/os/{pool}';
const request = (more: Partial<EnableRequest> = {}): EnableRequest => ({
  pools: [],
  allPools: false,
  settings: {},
  ...more,
});
const on = (more = {}) => ({ enabled: 'true', imageRepository: REPOSITORY, ...more });
const off = (more = {}) => ({ ...on(more), enabled: 'false' });
const KNOWN = ['infra', 'master', 'worker'];
const pools = KNOWN.map((name) => ({
  metadata: { name, labels: { tier: name === 'worker' ? 'front' : 'back' } },
}));

describe('switched on', () => {
  test.each([
    ['for the first time', {}, request({ settings: { imageRepository: REPOSITORY } }), on()],
    ['again', off({ pushSecret: 'push' }), request(), on({ pushSecret: 'push' })],
    ['again, for the same pools', off({ pools: 'worker' }), request(), on({ pools: 'worker' })],
    [
      'again, for another pool',
      off({ pools: 'worker' }),
      request({ pools: ['infra'] }),
      on({ pools: 'infra' }),
    ],
    [
      'for one pool more',
      on({ pools: 'worker' }),
      request({ pools: ['infra'] }),
      on({ pools: 'worker,infra' }),
    ],
    [
      'for a pool that is layered already',
      on({ pools: 'worker' }),
      request({ pools: ['worker'] }),
      on({ pools: 'worker' }),
    ],
    ['for one pool when all are layered', on(), request({ pools: ['worker'] }), on()],
    ['for all pools', on({ pools: 'worker', poolSelector: 'a=b' }), request({ allPools: true }), on()],
    [
      'again, with the same pool selector',
      off({ poolSelector: 'a=b' }),
      request(),
      on({ poolSelector: 'a=b' }),
    ],
    [
      'again, for pools instead of the pool selector',
      off({ poolSelector: 'a' }),
      request({ pools: ['infra'] }),
      on({ pools: 'infra' }),
    ],
    [
      'for one pool in addition to the pool selector',
      on({ poolSelector: 'a' }),
      request({ pools: ['infra'] }),
      on({ poolSelector: 'a', pools: 'infra' }),
    ],
    [
      'with another Secret',
      on({ pushSecret: 'a' }),
      request({ settings: { pushSecret: 'b' } }),
      on({ pushSecret: 'b' }),
    ],
  ])('%s', (_, before, given, after) => {
    expect(switchedOn(before, given)).toEqual(after);
    expect(switchedOn(after, given)).toEqual(after);
  });
});

describe('switched off', () => {
  test.each([
    ['for all pools', on({ pools: 'worker' }), [], off({ pools: 'worker' })],
    ['before it was ever on', {}, [], { enabled: 'false' }],
    ['for one of some', on({ pools: 'worker infra' }), ['infra'], on({ pools: 'worker' })],
    ['for one of all', on(), ['master'], on({ pools: 'infra,worker' })],
    ['for the last one', on({ pools: 'worker' }), ['worker'], off({ pools: 'worker' })],
    ['for every one of all', on(), KNOWN, off()],
    ['for one that is not layered', on({ pools: 'worker' }), ['infra'], on({ pools: 'worker' })],
    ['for one while all are off', off(), ['infra'], off()],
    [
      'for one that the pool selector matches',
      on({ poolSelector: 'tier=back' }),
      ['infra'],
      on({ pools: 'master' }),
    ],
    [
      'for one that the pool selector does not match',
      on({ poolSelector: 'tier=back' }),
      ['worker'],
      on({ poolSelector: 'tier=back' }),
    ],
  ])('%s', (_, before, named, after) => {
    expect(switchedOff(before, named, pools)).toEqual(after);
    expect(meaningOf(after).kind).not.toBe('invalid');
  });
});

test('the patch contains only what differs', () => {
  expect(dataPatch(on({ pools: 'a' }), off())).toEqual({ enabled: 'false', pools: null });
  expect(dataPatch(on(), on())).toBeUndefined();
});
