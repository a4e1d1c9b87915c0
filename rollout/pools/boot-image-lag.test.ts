import { expect, test } from 'vitest';
import { aPool, aRecord, image } from '../../test/fixtures/objects.ts';
import { bootImageLag } from './boot-image-lag.ts';
import type { PoolTarget } from './pool-target.ts';

const config = 'rendered-worker-1';
const target = (of: string) => ({ config, image: image(of) });
const record = aRecord(aPool('worker'), { config }, target('a'), target('b'), target('c'));
const layered = (of: string): PoolTarget => ({
  kind: 'layered',
  target: target(of),
  build: 'worker-1',
  sameContent: new Set(),
});
const awaiting = (newcomer: PoolTarget & { kind: 'awaiting-image' }): PoolTarget => newcomer;
const building = { kind: 'awaiting-image', config, state: 'Building', why: '' } as const;

test.each<[string, string | undefined, PoolTarget, number | undefined]>([
  ['boot the target', image('c'), layered('c'), 0],
  ['boot the image before', image('b'), layered('c'), 1],
  ['boot an older image', image('a'), layered('c'), 2],
  ['boot what was rolled back from', image('c'), layered('b'), 1],
  ['boot what nobody recorded', image('d'), layered('a'), 1],
  [
    'boot the last image while another is built',
    image('c'),
    awaiting({ ...building, newcomer: target('c') }),
    0,
  ],
  [
    'boot an older one while another is built',
    image('a'),
    awaiting({ ...building, newcomer: target('c') }),
    2,
  ],
  ['wait for the first image', image('a'), awaiting({ ...building, newcomer: { config } }), undefined],
  ['boot the stock image', undefined, layered('c'), undefined],
  ['boot the stock image, in standard mode', image('a'), { kind: 'standard', target: { config } }, undefined],
  ['have no target', image('a'), { kind: 'none', why: '' }, undefined],
])('new nodes that %s', (_what, bootImage, to, lag) => {
  expect(bootImageLag(record, bootImage, to)).toBe(lag);
});
