import { expect, test } from 'vitest';
import { annotations } from './names.ts';
import { awaitedPreBuiltImage, preBuiltImageProblem } from './pre-built-image.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const PUSH = 'r.example.com:5000/os/worker:latest';

test.each([
  [`r.example.com:5000/os/worker@${DIGEST}`, true],
  [`r.example.com:5000/os/worker:1@${DIGEST}`, true],
  ['r.example.com:5000/os/worker:1', false],
  ['r.example.com:5000/os/worker', false],
  [`r.example.com:5000/os/worker@sha256:${'a'.repeat(63)}`, false],
  [`r.example.com:5000/os/worker@${DIGEST.toUpperCase()}`, false],
  [`r.example.com:5000/os/infra@${DIGEST}`, false],
  [`r.example.com/os/worker@${DIGEST}`, false],
  [`os/worker@${DIGEST}`, false],
  [`r.example.com:5000/os/worker@${DIGEST} `, false],
])('%s', (image, isFine) => {
  expect(preBuiltImageProblem(image, PUSH)).toBe(
    isFine
      ? undefined
      : `is ${JSON.stringify(image)}; expected an image by digest in the pool's repository, r.example.com:5000/os/worker@sha256:<64 hexadecimal digits>`,
  );
});

test('only a pool without an image starts from one', () => {
  const metadata = { name: 'worker', annotations: { [annotations.preBuiltImage]: 'an image' } };
  expect(awaitedPreBuiltImage({ metadata })).toBe('an image');
  expect(awaitedPreBuiltImage({ metadata, status: { currentImagePullSpec: 'another' } })).toBeUndefined();
  expect(awaitedPreBuiltImage({ metadata: { name: 'worker' } })).toBeUndefined();
});
