import { describe, expect, it } from 'vitest';
import { aBuild, aPool, aSuccess, image } from '../../test/fixtures/objects.ts';
import type { PoolTarget } from './pool-target.ts';
import {
  automaticRequest,
  decideRollback,
  lastGood,
  parseRollback,
  type RollbackKnowledge,
  type RollbackRequest,
} from './rollback.ts';

const builds = [
  aBuild('one', 'rendered-worker-1', { at: '2026-01-01T00:00:00Z', status: aSuccess('1') }),
  aBuild('two', 'rendered-worker-2', { at: '2026-01-02T00:00:00Z', status: aSuccess('2') }),
];
const known: RollbackKnowledge = {
  builds,
  ran: [],
  standardTarget: (config) => (config === 'rendered-worker-1' ? { config } : undefined),
};
const layered = (config: string, digit: string): PoolTarget => ({
  kind: 'layered',
  target: { config, image: image(digit) },
  build: 'x',
  sameContent: new Set([image(digit)]),
});
const ownTarget = layered('rendered-worker-2', '2');
const standard: PoolTarget = { kind: 'standard', target: { config: 'rendered-worker-2' } };
const request = (more: Partial<RollbackRequest> = {}): RollbackRequest => ({
  config: 'rendered-worker-1',
  by: 'ada',
  reason: 'slow',
  at: '2026-06-01T00:00:00Z',
  ...more,
});

describe('a wish to go back', () => {
  it('to an image that was built for the pool holds the pool there, and records its own target', () => {
    expect(decideRollback(request({ image: image('1') }), ownTarget, known)).toEqual({
      kind: 'held',
      target: {
        kind: 'held',
        target: { config: 'rendered-worker-1', image: image('1') },
        why: 'rolled back by ada: slow',
        ownTarget,
      },
      from: { config: 'rendered-worker-2', layered: true, image: image('2') },
    });
  });

  it('to a config takes the newest image of it in a layered pool', () => {
    const more = aBuild('three', 'rendered-worker-1', {
      at: '2026-01-03T00:00:00Z',
      status: aSuccess('3'),
    });
    const decided = decideRollback(request(), ownTarget, { ...known, builds: [more, ...builds] });
    expect(decided).toMatchObject({ target: { target: { image: image('3') } } });
  });

  it('to a config is standard mode in a pool that is not layered', () => {
    const decided = decideRollback(request(), standard, known);
    expect(decided).toMatchObject({ target: { target: { config: 'rendered-worker-1' } } });
  });

  it('to what a node of the pool runs needs no build', () => {
    const ran = [{ config: 'rendered-worker-0', image: image('0') }];
    const wish = request({ config: 'rendered-worker-0', image: image('0') });
    expect(decideRollback(wish, ownTarget, { ...known, ran }).kind).toBe('held');
    expect(decideRollback(wish, ownTarget, known).kind).toBe('refused');
  });

  it.each<[string, Partial<RollbackRequest>, PoolTarget, RegExp]>([
    [
      'a config that has no image',
      { config: 'rendered-worker-0' },
      ownTarget,
      /no MachineOSBuild of rendered-worker-0/,
    ],
    ['an image of another config', { image: image('2') }, ownTarget, /made registry.*2, and no node/],
    ['a config that is gone', { config: 'rendered-worker-0' }, standard, /no rendered MachineConfig/],
    ['an image when layering is off', { image: image('1') }, standard, /not layered/],
  ])('to %s is refused', (_what, more, target, why) => {
    expect(decideRollback(request(more), target, known)).toMatchObject({
      kind: 'refused',
      why: expect.stringMatching(why),
    });
  });

  const from = { config: 'rendered-worker-2', layered: true, image: image('2') };
  it.each<[string, PoolTarget, string]>([
    ['wants the same', ownTarget, 'held'],
    [
      'wants the same under other labels',
      { ...layered('rendered-worker-2', '9'), sameContent: new Set([image('2'), image('9')]) } as PoolTarget,
      'held',
    ],
    [
      'waits for the same to be built anew',
      {
        kind: 'awaiting-image',
        config: 'rendered-worker-2',
        state: 'Building',
        why: '',
        newcomer: { config: '' },
      },
      'held',
    ],
    ['wants another config', layered('rendered-worker-3', '3'), 'over'],
    ['wants another image', layered('rendered-worker-2', '3'), 'over'],
    ['is no longer layered', standard, 'over'],
  ])('while the pool %s', (_what, now, kind) => {
    expect(decideRollback(request({ image: image('1'), from }), now, known).kind).toBe(kind);
  });
});

describe('what a pool goes back to by itself', () => {
  const ranBefore = { ...aPool('worker'), status: { configuration: { name: 'rendered-worker-1' } } };

  it('is what most nodes ran of the configuration that all had', () => {
    const ran = [
      { config: 'rendered-worker-2', image: image('2') },
      { config: 'rendered-worker-1', image: image('1') },
    ];
    expect(lastGood(ranBefore, ownTarget, { ...known, ran })).toEqual(ran[1]);
  });

  it('is its newest image when every node has moved on', () => {
    const ran = [{ config: 'rendered-worker-2', image: image('2') }];
    expect(lastGood(ranBefore, ownTarget, { ...known, ran })).toEqual({
      config: 'rendered-worker-1',
      image: image('1'),
    });
  });

  it('is an earlier image of the same config when only the base changed', () => {
    const before = { status: { configuration: { name: 'rendered-worker-2' } } };
    const ran = [{ config: 'rendered-worker-2', image: image('2') }];
    expect(lastGood(before, layered('rendered-worker-2', '3'), { ...known, ran })).toEqual(ran[0]);
  });

  it('is the config that all had in standard mode', () => {
    expect(lastGood(ranBefore, standard, known)).toEqual({ config: 'rendered-worker-1' });
  });

  it('is nothing where nothing is known that worked, or where it is what failed', () => {
    expect(lastGood(aPool('worker'), standard, known)).toBeUndefined();
    const ran = [{ config: 'rendered-worker-2', image: image('2') }];
    const same = { status: { configuration: { name: 'rendered-worker-2' } } };
    expect(lastGood(same, ownTarget, { ...known, ran })).toBeUndefined();
  });

  it('is asked for in words that are read back', () => {
    const asked = automaticRequest({ config: 'c' }, standard, 'two failed', new Date(0));
    expect(parseRollback(JSON.stringify(asked))).toEqual({
      config: 'c',
      by: 'shale',
      reason: 'two failed',
      at: '1970-01-01T00:00:00.000Z',
      from: { config: 'rendered-worker-2', layered: false },
    });
  });
});
