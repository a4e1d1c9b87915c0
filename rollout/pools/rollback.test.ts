import { describe, expect, it } from 'vitest';
import { parseRollback, type RollbackRequest } from '../../api/annotation-requests.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { aBuild, aMachineConfigNode, aPool, aRecord, aSuccess, image } from '../../test/fixtures/objects.ts';
import type { NodeTarget } from './node-target.ts';
import { nodeTarget, type PoolTarget } from './pool-target.ts';
import {
  automaticRequest,
  decideRollback as decideRollbackAt,
  lastGood,
  RELABEL_LIMIT,
  type RollbackKnowledge,
  runningTarget,
} from './rollback.ts';

const recorded = (...targets: readonly NodeTarget[]) => aRecord(aPool('worker'), ...targets);
const one = { config: 'rendered-worker-1', image: image('1') };
const two = { config: 'rendered-worker-2', image: image('2') };
const known: RollbackKnowledge = {
  record: recorded({ config: 'rendered-worker-1' }, one, two),
  ran: [],
  isRenderingDue: false,
  isKept: () => true,
  images: {
    builds: [],
    policyDigest: 'sha256:p',
    unlisted: () => [],
    isRecorded: () => true,
    checkOf: () => undefined,
  },
  standardTarget: (config) => (config === 'rendered-worker-1' ? { config } : undefined),
};
const layered = (config: string, digit: string): PoolTarget => ({
  kind: 'layered',
  target: { config, image: image(digit) },
  build: 'x',
  sameContent: new Set([image(digit)]),
});
const ownTarget = layered('rendered-worker-2', '2');
const NOW = Date.parse('2026-06-01T00:00:00Z');
const decideRollback = (
  asked: RollbackRequest | undefined,
  own: PoolTarget,
  at: RollbackKnowledge,
  now = NOW,
) => decideRollbackAt(asked, own, at, now);
const standard: PoolTarget = { kind: 'standard', target: { config: 'rendered-worker-2' } };
const request = (more: Partial<RollbackRequest> = {}): RollbackRequest => ({
  config: 'rendered-worker-1',
  by: 'ada',
  reason: 'slow',
  at: '2026-06-01T00:00:00Z',
  ...more,
});

describe('a requested rollback', () => {
  it('to an image that was built for the pool holds the pool there, and records its own target', () => {
    expect(decideRollback(request({ image: image('1') }), ownTarget, known)).toEqual({
      kind: 'rolled-back',
      target: {
        kind: 'rolled-back',
        target: { config: 'rendered-worker-1', image: image('1') },
        sameContent: new Set([image('1')]),
        why: 'rolled back by ada: slow',
        ownTarget,
      },
      from: { config: 'rendered-worker-2', layered: true, image: image('2') },
      waitsUntil: '2026-06-01T00:01:00.000Z',
    });
  });

  it('to a config takes the newest image of it in a layered pool', () => {
    const record = recorded(one, two, { config: 'rendered-worker-1', image: image('3') });
    const decided = decideRollback(request(), ownTarget, { ...known, record });
    expect(decided).toMatchObject({ target: { target: { image: image('3') } } });
    const isKept = (found: string) => found !== image('3');
    const kept = decideRollback(request(), ownTarget, { ...known, record, isKept });
    expect(kept).toMatchObject({ target: { target: { image: image('1') } } });
  });

  it('to a config is standard mode in a pool that is not layered', () => {
    const decided = decideRollback(request(), standard, known);
    expect(decided).toMatchObject({ target: { target: { config: 'rendered-worker-1' } } });
  });

  it('to what a node claims to run is refused where the record of the pool does not have it', () => {
    const ran = [{ config: 'rendered-worker-0', image: image('0') }];
    const claimed = request({ config: 'rendered-worker-0', image: image('0') });
    expect(decideRollback(claimed, ownTarget, { ...known, ran })).toEqual({
      kind: 'refused',
      why: `the record of the pool has no image ${image('0')} of rendered-worker-0`,
    });
    expect(decideRollback(claimed, ownTarget, { ...known, record: recorded(...ran) }).kind).toBe(
      'rolled-back',
    );
  });

  it('to an image that was deleted from the registry is refused', () => {
    const decided = decideRollback(request(), ownTarget, { ...known, isKept: () => false });
    expect(decided).toMatchObject({ why: `${image('1')} of rendered-worker-1 is no longer in the registry` });
  });

  it.each<[string, Partial<RollbackRequest>, PoolTarget, RegExp]>([
    [
      'a config that has no image',
      { config: 'rendered-worker-0' },
      ownTarget,
      /no image of rendered-worker-0/,
    ],
    [
      'an image of another config',
      { image: image('2') },
      ownTarget,
      /no image registry.*2{64} of rendered-worker-1/,
    ],
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
    ['wants the same', ownTarget, 'rolled-back'],
    [
      'wants the same under other labels',
      { ...layered('rendered-worker-2', '9'), sameContent: new Set([image('2'), image('9')]) } as PoolTarget,
      'rolled-back',
    ],
    [
      'waits for the same image to be built again',
      {
        kind: 'awaiting-image',
        config: 'rendered-worker-2',
        state: 'Building',
        why: '',
        initialTarget: { config: '' },
      },
      'rolled-back',
    ],
    ['wants another config', layered('rendered-worker-3', '3'), 'over'],
    ['wants another image', layered('rendered-worker-2', '3'), 'over'],
    ['is no longer layered', standard, 'over'],
  ])('while the pool %s', (_what, now, kind) => {
    expect(decideRollback(request({ image: image('1'), from }), now, known).kind).toBe(kind);
  });
});

describe('a requested rollback to an image whose label does not list what nodes run', () => {
  const first = aBuild('first', 'rendered-worker-1', { status: aSuccess('1'), policyDigest: 'sha256:p' });
  const again = aBuild('again', 'rendered-worker-1', {
    status: aSuccess('7', 'Relabel'),
    policyDigest: 'sha256:p',
  });
  const short: RollbackKnowledge = {
    ...known,
    images: {
      ...known.images,
      builds: [first],
      unlisted: (build) => (build === first ? ['rendered-worker-2'] : []),
      isRecorded: (build) => build !== again,
    },
  };
  const asked = request({ image: image('1') });
  const from = { config: 'rendered-worker-2', layered: true, image: image('2') };
  const until = NOW + RELABEL_LIMIT;
  const waitsUntil = new Date(until).toISOString();
  const targetOf = (more: Partial<RollbackRequest>, now = NOW, at = short) => {
    const decided = decideRollback({ ...asked, ...more }, ownTarget, at, now);
    return decided.kind === 'rolled-back' ? decided.target : undefined;
  };

  it('waits for another label, and writes down for how long', () => {
    const decided = decideRollback(asked, ownTarget, short);
    expect(decided).toMatchObject({ waitsUntil, target: { target: one, awaits: { until } } });
  });

  it.each<[string, Partial<RollbackRequest>, number, boolean]>([
    ['before the time that was written down', { from, waitsUntil }, until - 1, true],
    ['after it', { from, waitsUntil }, until, false],
    ['where an older operator wrote down none', { from }, NOW, false],
    ['where it is no time', { from, waitsUntil: 'soon' }, NOW, false],
    [
      'where it is further away than anybody may wait',
      { from, waitsUntil: '2026-07-01T00:00:00Z' },
      NOW,
      false,
    ],
  ])('%s', (_what, more, now, waits) => {
    const target = targetOf(more, now);
    expect(target?.target).toEqual(one);
    if (waits) expect(target?.awaits).toMatchObject({ why: 'the builder labels it again' });
    else expect(target).toMatchObject({ reboots: expect.stringContaining('no other label in time') });
  });

  it('takes the other label once it is recorded, and moves no node that runs the image under the first', () => {
    const builds = [first, again];
    const candidate = { ...short, images: { ...short.images, builds } };
    expect(decideRollback(asked, ownTarget, candidate)).toMatchObject({
      candidate: again,
      target: {
        target: one,
        awaits: {
          why: 'MachineOSBuild again labelled it again: it is being compared with what the MachineConfigs say',
        },
      },
    });
    const relabelled = { config: 'rendered-worker-1', image: image('7') };
    const record = recorded(one, two, relabelled);
    const images = { ...short.images, builds, isRecorded: () => true };
    const target = targetOf({}, NOW, { ...short, record, images });
    expect(target).toEqual({
      kind: 'rolled-back',
      target: relabelled,
      sameContent: new Set([image('1'), image('7')]),
      why: 'rolled back by ada: slow',
      ownTarget,
    });
    const runs = (config: string, digit: string) =>
      aMachineConfigNode('a', {}, {
        mode: 'Layered',
        configVersion: { current: config, desired: config },
        configImage: { currentImage: image(digit) },
      } as NonNullable<MachineConfigNode['status']>);
    expect(target && nodeTarget(target, runs('rendered-worker-1', '1'))).toEqual(one);
    expect(target && nodeTarget(target, runs('rendered-worker-2', '2'))).toEqual(relabelled);
  });

  it('leaves nodes alone while it waits, but for those that run the image already', () => {
    const target = targetOf({});
    const node = (config: string, digit: string) =>
      aMachineConfigNode('a', {}, {
        mode: 'Layered',
        configVersion: { current: config, desired: config },
        configImage: { currentImage: image(digit) },
      } as NonNullable<MachineConfigNode['status']>);
    expect(target && nodeTarget(target, node('rendered-worker-2', '2'))).toBeUndefined();
    expect(target && nodeTarget(target, node('rendered-worker-1', '1'))).toEqual(one);
    expect(target && nodeTarget(target, undefined)).toEqual(one);
  });

  it('in standard mode waits for nothing', () => {
    const decided = decideRollback(request(), standard, short);
    expect(decided).toHaveProperty('waitsUntil', undefined);
    expect(decided).not.toHaveProperty('target.awaits');
  });
});

describe('the target of an automatic rollback', () => {
  const ranBefore = { ...aPool('worker'), status: { configuration: { name: 'rendered-worker-1' } } };

  it('is what most nodes ran of the configuration that all had', () => {
    const again = { config: 'rendered-worker-1', image: image('3') };
    const record = recorded(one, again, two);
    expect(lastGood(ranBefore, ownTarget, { ...known, record, ran: [two, one] })).toEqual(one);
  });

  it('is its newest image when every node has moved on', () => {
    expect(lastGood(ranBefore, ownTarget, { ...known, ran: [two] })).toEqual(one);
  });

  it('is an earlier image of the same config when only the base changed', () => {
    const before = { status: { configuration: { name: 'rendered-worker-2' } } };
    expect(lastGood(before, layered('rendered-worker-2', '3'), { ...known, ran: [two] })).toEqual(two);
  });

  it('is what more than half of the nodes run where no rollout ever ended', () => {
    const pool = aPool('worker');
    expect(lastGood(pool, ownTarget, { ...known, ran: [one, one, two] })).toEqual(one);
    expect(lastGood(pool, ownTarget, { ...known, ran: [one, two, undefined] })).toBeUndefined();
  });

  it('is never what only the status of a node names', () => {
    const evil = { config: 'rendered-worker-1', image: image('e') };
    expect(lastGood(ranBefore, ownTarget, { ...known, ran: [evil, evil, evil] })).toEqual(one);
    expect(lastGood(ranBefore, ownTarget, { ...known, ran: [evil], record: recorded(two) })).toBeUndefined();
  });

  it('is no image that was deleted from the registry', () => {
    expect(lastGood(ranBefore, ownTarget, { ...known, isKept: () => false })).toBeUndefined();
  });

  it('is the config that all had in standard mode', () => {
    expect(lastGood(ranBefore, standard, known)).toEqual({ config: 'rendered-worker-1' });
  });

  it('is nothing where nothing is known that worked, or where it is what failed', () => {
    expect(lastGood(aPool('worker'), standard, known)).toBeUndefined();
    const same = { status: { configuration: { name: 'rendered-worker-2' } } };
    expect(lastGood(same, ownTarget, { ...known, ran: [two] })).toBeUndefined();
  });

  it('is asked for in words that are read back', () => {
    const asked = automaticRequest({ config: 'c', reason: 'two failed' }, standard, new Date(0));
    expect(parseRollback(JSON.stringify(asked))).toEqual({
      config: 'c',
      by: 'shale',
      reason: 'two failed',
      at: '1970-01-01T00:00:00.000Z',
      from: { config: 'rendered-worker-2', layered: false },
    });
  });
});

describe('what every node of a pool runs', () => {
  const updated = (name?: string) => ({
    ...aPool('worker'),
    status: name === undefined ? {} : { configuration: { name } },
  });
  const three = { config: 'rendered-worker-1', image: image('3') };
  const awaiting: PoolTarget = {
    kind: 'awaiting-image',
    config: 'rendered-worker-2',
    state: 'Building',
    why: '',
    initialTarget: one,
  };

  it.each<[string, PoolTarget, string | undefined, Partial<RollbackKnowledge>, NodeTarget | RegExp]>([
    ['the image of its config', ownTarget, one.config, { ran: [one] }, one],
    ['it while the next one is built', awaiting, one.config, { ran: [one] }, one],
    [
      'the image that most nodes run',
      ownTarget,
      one.config,
      { record: recorded(one, three), ran: [three, one, three] },
      three,
    ],
    ['the newest one, where no node says', ownTarget, one.config, { record: recorded(one, three) }, three],
    ['its own target', layered(one.config, '1'), one.config, { ran: [one] }, one],
    ['no image that is not recorded', ownTarget, one.config, { ran: [{ ...one, image: image('9') }] }, one],
    [
      'no image that is gone',
      ownTarget,
      one.config,
      { isKept: () => false },
      /no image that all of its nodes run/,
    ],
    ['the config of standard mode', standard, one.config, {}, { config: one.config }],
    [
      'no image in standard mode',
      standard,
      one.config,
      { record: recorded(one) },
      /no rendered config that all/,
    ],
    [
      'no config in layered mode',
      ownTarget,
      one.config,
      { record: recorded({ config: one.config }) },
      /no image/,
    ],
    [
      'nothing before a first rollout',
      ownTarget,
      undefined,
      { ran: [one] },
      /no image that all of its nodes run/,
    ],
    ['nothing in a pool without a target', { kind: 'none', why: '' }, one.config, {}, /has no target yet/],
  ])('is %s', (_what, own, all, more, expected) => {
    const found = runningTarget(updated(all), own, { ...known, ...more });
    if (expected instanceof RegExp) expect(found).toMatch(expected);
    else expect(found).toEqual(expected);
  });
});

it.each<[string, PoolTarget, Partial<RollbackRequest>]>([
  ['its image', layered(one.config, '1'), { image: one.image }],
  ['its config', layered(one.config, '1'), {}],
  ['the config of standard mode', { kind: 'standard', target: { config: one.config } }, {}],
])('a rollback to %s holds nothing back, and is over', (_what, own, more) => {
  expect(decideRollback(request(more), own, known)).toMatchObject({
    kind: 'over',
    why: expect.stringContaining("is the pool's target already"),
  });
});

it('a rollback from what is not rendered yet holds the pool, and is of what is rendered then', () => {
  const due = { ...known, isRenderingDue: true };
  const early = decideRollback(request(), layered(one.config, '1'), due);
  expect(early).toMatchObject({ kind: 'rolled-back', from: undefined, target: { target: one } });
  expect(decideRollback(request(), ownTarget, known)).toMatchObject({
    kind: 'rolled-back',
    from: { config: 'rendered-worker-2', layered: true, image: image('2') },
  });
});
