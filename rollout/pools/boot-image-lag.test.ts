import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { aMachineConfigNode, aPool, aRecord, image } from '../../test/fixtures/objects.ts';
import { bootImageLag, newNodesLag } from './boot-image-lag.ts';
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
const awaiting = (initialTarget: PoolTarget & { kind: 'awaiting-image' }): PoolTarget => initialTarget;
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
    awaiting({ ...building, initialTarget: target('c') }),
    0,
  ],
  [
    'boot an older one while another is built',
    image('a'),
    awaiting({ ...building, initialTarget: target('c') }),
    2,
  ],
  ['wait for the first image', image('a'), awaiting({ ...building, initialTarget: { config } }), undefined],
  ['boot the stock image', undefined, layered('c'), undefined],
  ['boot the stock image, in standard mode', image('a'), { kind: 'standard', target: { config } }, undefined],
  ['have no target', image('a'), { kind: 'none', why: '' }, undefined],
])('new nodes that %s', (_what, bootImage, to, lag) => {
  expect(bootImageLag(record, bootImage, to)).toBe(lag);
});

const newNode = (status: MachineConfigNodeStatus | undefined) =>
  aMachineConfigNode('new', { configImage: { desiredImage: image('c') } }, status);
const came = (currentImage: ReturnType<typeof image>) =>
  newNode({ mode: 'Layered', configImage: { currentImage } });
const stock = newNode({ mode: 'Standard' });

test.each<[string, ReturnType<typeof newNode>[], string | undefined, number | undefined]>([
  ['came with what new nodes boot', [came(image('b'))], image('b'), 0],
  ['came with the image before', [came(image('a'))], image('b'), 1],
  ['came with an older image', [came(image('a')), came(image('c'))], image('c'), 2],
  ['came with the stock image', [stock], image('b'), 2],
  ['came with an image of somebody else', [came(image('d'))], image('b'), 2],
  ['came with different images', [came(image('b')), stock, came(image('a'))], image('b'), 2],
  ['have their target, which is not proven', [came(image('c'))], image('b'), 0],
  ['have not reported', [newNode(undefined), newNode({})], image('b'), undefined],
  ['came with the stock image, as they should', [stock], undefined, undefined],
  ['are none', [], image('b'), undefined],
])('new nodes that %s', (_what, nodes, bootImage, lag) => {
  expect(newNodesLag(record, bootImage, nodes)).toBe(lag);
});
