import { expect, test } from 'vitest';
import { digestOfTag, isBuildTag } from './shale-tags.ts';

const HASH = '0123456789abcdef'.repeat(2);

test.each([
  `worker-${HASH}`,
  `worker.gpu-a-${HASH}-arm64`,
  `worker-${HASH}-ppc64le-0123456789ab`,
  `worker-${HASH}-0123456789ab`,
  `engine-${HASH}`,
  `base-${HASH}`,
])('%s is a tag of Shale', (tag) => {
  expect(isBuildTag(tag)).toBe(true);
});

test.each([
  'latest',
  'current',
  'current-worker',
  '1.0',
  HASH,
  `worker-${HASH}-tested`,
  `worker-${HASH}.sig`,
  `Worker-${HASH}`,
  `sha256-${HASH}${HASH}`,
])('%s is somebody else’s, or about an image', (tag) => {
  expect(isBuildTag(tag)).toBe(false);
});

test.each([
  [`sha256-${HASH}${HASH}`, `${HASH}${HASH}`],
  [`sha256-${HASH}${HASH}.sig`, `${HASH}${HASH}`],
  [`sha256-${HASH}`, undefined],
  ['latest', undefined],
])('%s is about the image %s', (tag, digest) => {
  expect(digestOfTag(tag)).toBe(digest);
});
