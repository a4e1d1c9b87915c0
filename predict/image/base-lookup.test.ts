import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { parseDigest } from '../../api/references.ts';
import { aBuild, aMachineOSConfig, aSuccess, image } from '../../test/fixtures/objects.ts';
import { type BaseLookup, builtBase, imagesOfBase, lookupsAround, pinnedBase } from './base-lookup.ts';

const TAG = 'registry.test:5000/os:1';
const digest = (digit: string) => parseDigest(`sha256:${digit.repeat(64)}`);
const found = (digit: string, platforms: Readonly<Record<string, string>> = {}): BaseLookup => ({
  kind: 'found',
  digest: digest(digit),
  platforms: new Map(Object.entries(platforms).map(([name, own]) => [name, digest(own)])),
});
const unknown: BaseLookup = { kind: 'unknown', why: 'connection refused' };

const current = (name: string): MachineOSConfig => ({
  ...aMachineOSConfig('worker'),
  status: {
    observedGeneration: 1,
    machineOSBuild: { group: 'machineconfiguration.openshift.io', resource: 'machineosbuilds', name },
  },
});
function built(base: string, own: string, instances: Readonly<Record<string, string>> = {}): MachineOSBuild {
  const build = aBuild('worker-1', 'rendered-worker-1', { status: aSuccess('a', 'Append', image(own)) });
  const more = Object.entries(instances).map(([architecture, digit]) => ({
    architecture,
    image: image('a'),
    baseImage: image(digit),
  }));
  return {
    ...build,
    spec: { ...build.spec, baseImage: base },
    status: { ...build.status, ...(more.length === 0 ? {} : { instances: more }) },
  };
}

test.each<[string, MachineOSBuild, string, readonly string[], BaseLookup | undefined]>([
  ['an image', built(`${TAG}@${digest('1')}`, '1'), TAG, ['amd64'], found('1', { amd64: '1' })],
  ['an index', built(`${TAG}@${digest('9')}`, '1'), TAG, ['amd64'], found('9', { amd64: '1' })],
  [
    'an index for several architectures',
    built(`${TAG}@${digest('9')}`, '1', { amd64: '1', arm64: '2' }),
    TAG,
    ['amd64', 'arm64'],
    found('9', { amd64: '1', arm64: '2' }),
  ],
  ['another tag', built(`${TAG}@${digest('1')}`, '1'), 'registry.test:5000/os:2', ['amd64'], undefined],
  ['a name by digest', built(image('1'), '1'), image('1'), ['amd64'], undefined],
])('the current build tells what a tag stood for: %s', (_what, build, requested, architectures, expected) => {
  expect(builtBase(current('worker-1'), [build], requested, architectures)).toEqual(expected);
});

test('a build that is not the current one tells nothing', () => {
  const build = built(`${TAG}@${digest('1')}`, '1');
  expect(builtBase(current('worker-2'), [build], TAG, ['amd64'])).toBeUndefined();
  expect(builtBase(aMachineOSConfig('worker'), [build], TAG, ['amd64'])).toBeUndefined();
});

test.each<[string, BaseLookup | undefined, BaseLookup]>([
  ['says the registry, where it answers', found('2'), found('2')],
  ['is assumed to be what it was, where it does not answer', unknown, found('1')],
  ['is assumed to be what it was, where it is not asked', undefined, found('1')],
])('what a tag stands for now %s', (_what, answer, now) => {
  const asked = new Map(answer === undefined ? [] : [[TAG, answer]]);
  const { before, after } = lookupsAround(asked, { name: TAG, base: found('1') });
  expect(before.get(TAG)).toEqual(found('1'));
  expect(after.get(TAG)).toEqual(now);
  expect(lookupsAround(asked, undefined).before.get(TAG)).toEqual(answer);
});

test('a base image is named with its digest where that is known, and has an image for each architecture', () => {
  const lookups = new Map([[TAG, found('9', { amd64: '1', arm64: '2' })]]);
  expect(pinnedBase(TAG, lookups)).toBe(`${TAG}@${digest('9')}`);
  expect(imagesOfBase(TAG, lookups)).toEqual(['1', '2'].map((d) => `registry.test:5000/os@${digest(d)}`));
  expect(imagesOfBase(TAG, new Map([[TAG, found('1')]]))).toEqual([`registry.test:5000/os@${digest('1')}`]);
  const refused = new Map([[TAG, unknown]]);
  expect([pinnedBase(TAG, refused), pinnedBase(TAG, undefined)]).toEqual([TAG, TAG]);
  expect(imagesOfBase(TAG, refused)).toEqual([]);
});
