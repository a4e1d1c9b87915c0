import { expect, test } from 'vitest';
import { decideOptIn, type LayeredState, type StandardState } from './opt-in.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const STOCK = `r.example.com/os@${digest('a')}`;
const node: StandardState = { config: 'rendered-1', base: STOCK, osBackend: 'ostree' };
const image: LayeredState = { config: 'rendered-1', base: STOCK, byEngine: false };

test.each<[string, Partial<StandardState>, Partial<LayeredState>]>([
  ['the same name', {}, {}],
  ['another repository', {}, { base: `mirror.example.com/x/os@${digest('a')}` }],
  ['a tag beside the digest', {}, { base: `r.example.com/os:1@${digest('a')}` }],
])('a node whose config is in the image needs no reboot: the base image by %s', (_name, from, to) => {
  expect(decideOptIn({ ...node, ...from }, { ...image, ...to })).toEqual({ kind: 'equal' });
});

test.each<[string, Partial<StandardState>, Partial<LayeredState>, string]>([
  ['another config', {}, { config: 'rendered-2' }, 'its image has rendered-2 instead of rendered-1'],
  ['no config', { config: '' }, {}, 'its image has rendered-1 instead of no rendered config'],
  ['a container engine', {}, { byEngine: true }, 'a container engine makes its image'],
  ['bootc', { osBackend: 'bootc' }, {}, 'bootc writes a staged image at shutdown only'],
  ['rpm-ostree', { osBackend: 'rpm-ostree' }, {}, 'rpm-ostree writes a staged image at shutdown only'],
  ['an unknown OS backend', { osBackend: undefined }, {}, 'its OS backend is not known'],
  ['an unknown stock image', { base: '' }, {}, 'the image that it booted is not known'],
  ['an unknown base image', {}, { base: undefined }, 'the digest of its base image is not known'],
  [
    'a base image by tag',
    {},
    { base: 'r.example.com/os:1' },
    'the digest of its base image r.example.com/os:1 is not known',
  ],
  [
    'another base image',
    {},
    { base: `r.example.com/os@${digest('b')}` },
    `its image is based on r.example.com/os@${digest('b')} instead of ${STOCK}`,
  ],
])('%s means a reboot', (_name, from, to, why) => {
  expect(decideOptIn({ ...node, ...from }, { ...image, ...to })).toEqual({
    kind: 'reboot',
    why: `the node switches from standard to layered mode, and ${why}`,
  });
});
