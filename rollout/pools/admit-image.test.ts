import { expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import { aBuild, aSuccess } from '../../test/fixtures/objects.ts';
import { labelRefusal } from './admit-image.ts';

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
