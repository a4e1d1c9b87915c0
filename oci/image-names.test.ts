import { expect, test } from 'vitest';
import { imageNames, isFullName, withLibrary } from './image-names.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

test.each([
  ['docker.io/x', 'docker.io/library/x'],
  ['docker.io/a/x', 'docker.io/a/x'],
  ['docker.io/library/x', 'docker.io/library/x'],
  ['q.io/x', 'q.io/x'],
  ['docker.io:5000/x', 'docker.io:5000/x'],
])('%s is %s', (name, full) => {
  expect(withLibrary(name)).toBe(full);
});

test.each([
  ['q.io/x', true],
  ['q.io:5000/a/x_y--z', true],
  ['localhost/x', true],
  ['Host/x', true],
  ['[::1]:5000/x', true],
  ['docker.io/a/x', true],
  ['docker.io/x', false],
  ['index.docker.io/a/x', false],
  ['host/x', false],
  ['x', false],
  ['q.io', false],
  ['q.io/', false],
  ['q.io/X', false],
  ['q.io/x:1', false],
  ['q.io./x', false],
  ['q.io:5000:5000/x', false],
])('%s is a full name: %s', (text, isOne) => {
  expect(isFullName(text)).toBe(isOne);
});

test.each([
  [`r.io:5000/a/b_c@${DIGEST}`, true],
  [`[::1]:5000/a@${DIGEST}`, true],
  [`registry/a@${DIGEST}`, true],
  [`a..b/a@${DIGEST}`, false],
  [`a..b/-a@${DIGEST}`, false],
  [`reg:/_a@${DIGEST}`, false],
  [`r.io/a_@${DIGEST}`, false],
  [`r.io/a/@${DIGEST}`, false],
  [`-r.io/a@${DIGEST}`, false],
  [`r.io/a:1@${DIGEST}`, false],
])('%s is an image by digest: %s', (text, isOne) => {
  expect(imageNames.byDigest.test(text)).toBe(isOne);
});

test.each([
  ['r.io:5000/a/b:1', true],
  ['r.io/a', false],
  ['reg:/a:1', false],
  ['r.io/-a:1', false],
  ['r.io/a:-1', false],
])('%s is an image by tag: %s', (text, isOne) => {
  expect(imageNames.byTag.test(text)).toBe(isOne);
});

test.each([
  ['q.io', true],
  ['q.io:5000/x', true],
  ['*.q.io', true],
  ['*.q.io:5000', false],
  ['*.q.io/x', false],
  ['*', false],
  ['https://q.io', false],
  ['q.io/x..y', false],
])('%s is a scope: %s', (text, isOne) => {
  expect(imageNames.scope.test(text)).toBe(isOne);
});
