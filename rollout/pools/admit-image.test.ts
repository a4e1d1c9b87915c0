import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { imageLabels } from '../../api/names.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { aBuild, aMachineOSConfig, aPool, aSuccess, image } from '../../test/fixtures/objects.ts';
import { labelRefusal, relabelRefusal } from './admit-image.ts';
import { newRevisions } from './pool-record.ts';

/** What of a build's image may be recorded by its labels; its repository and base: pool-target.test.ts. */

const made = aBuild('b', 'rendered-worker-1', { policyDigest: 'sha256:p', status: aSuccess('1') });
const build = { ...made, spec: { ...made.spec, baseImage: 'registry.test:5000/stock:1@sha256:0' } };
const labels = {
  [imageLabels.renderedConfig]: 'rendered-worker-1',
  [imageLabels.policyDigest]: 'sha256:p',
  [imageLabels.baseImage]: 'registry.test:5000/stock@sha256:1',
};

test('an image whose labels name what was requested', () => {
  expect(labelRefusal(build, [labels])).toBeUndefined();
  expect(labelRefusal(build, [labels, labels])).toBeUndefined();
});

test('an image on one of a container engine, whose stock image is the base', () => {
  const engine = {
    ...labels,
    [imageLabels.baseImage]: 'registry.test:5000/os@sha256:2',
    [imageLabels.stockImage]: 'registry.test:5000/stock@sha256:1',
  };
  expect(labelRefusal(build, [engine])).toBeUndefined();
});

test.each([
  [
    imageLabels.renderedConfig,
    'rendered-worker-0',
    /rendered-config is rendered-worker-0; expected rendered-worker-1$/,
  ],
  [imageLabels.renderedConfig, undefined, /rendered-config is missing/],
  [imageLabels.policyDigest, 'sha256:old', /policy-digest is sha256:old; expected sha256:p/],
  [imageLabels.policyDigest, undefined, /policy-digest is missing/],
  [
    imageLabels.baseImage,
    'registry.test:5000/evil@sha256:1',
    /base-image is registry\.test:5000\/evil; expected/,
  ],
  [imageLabels.baseImage, undefined, /base-image is missing/],
])('is refused with label %s %s', (label, value, why) => {
  const { [label]: _removed, ...others } = labels;
  const changed = value === undefined ? others : { ...labels, [label]: value };
  expect(labelRefusal(build, [changed])).toMatch(why);
  // One image of an index is enough: a node may get just that one.
  expect(labelRefusal(build, [labels, changed])).toMatch(why);
});

test('an index without an image is refused', () => {
  expect(labelRefusal(build, [])).toBe('the index names no image');
});

test.each<
  [string, Partial<NonNullable<MachineOSBuild['status']>>, Partial<PoolRevision['spec']>, string | undefined]
>([
  ['that is on the base of what is recorded', {}, {}, undefined],
  [
    'in another repository',
    { digestedImagePushSpec: `evil.test/os@sha256:${'e'.repeat(64)}` },
    {},
    'its image is in repository evil.test/os; expected registry.test:5000/os, which the MachineOSConfig names',
  ],
  [
    'on another base',
    { baseImage: 'evil' },
    {},
    'it is based on evil, and the record of the pool has no image of rendered-worker-1 on that',
  ],
  [
    'of another config',
    {},
    { machineConfig: { name: 'rendered-worker-0' } },
    'it is based on base, and the record of the pool has no image of rendered-worker-1 on that',
  ],
  [
    'whose record names no base',
    { baseImage: undefined as never },
    { baseImage: undefined as never },
    'it is based on none, and the record of the pool has no image of rendered-worker-1 on that',
  ],
])('an image that was labelled again %s', (_what, status, spec, why) => {
  const target = { config: 'rendered-worker-1', image: image('1') };
  const [revision] = newRevisions(aPool('worker'), [], [{ target, build: made }]);
  const record = [
    { ...revision, metadata: { name: 'r' }, spec: { ...revision?.spec, ...spec } } as PoolRevision,
  ];
  const again = { ...made, status: { ...made.status, ...status } };
  expect(relabelRefusal(again, { machineOSConfig: aMachineOSConfig('worker'), record })).toBe(why);
});
