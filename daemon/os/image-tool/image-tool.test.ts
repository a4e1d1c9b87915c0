import { describe, expect, it } from 'vitest';
import { bootc } from '../bootc/bootc.ts';
import { rpmOstree } from '../rpm-ostree/rpm-ostree.ts';
import { digestedImage } from './image-tool.ts';

const found = `sha256:${'a'.repeat(64)}`;
const asked = `sha256:${'b'.repeat(64)}`;

describe('digestedImage', () => {
  it.each([
    ['quay.io/os/image', `quay.io/os/image@${found}`],
    ['quay.io/os/image:latest', `quay.io/os/image@${found}`],
    ['localhost:5000/os/image', `localhost:5000/os/image@${found}`],
    ['localhost:5000/os/image:1', `localhost:5000/os/image@${found}`],
    // A digest that was asked for may be that of an index; what was found is then one of its manifests.
    [`quay.io/os/image@${asked}`, `quay.io/os/image@${asked}`],
    [`quay.io/os/image:latest@${asked}`, `quay.io/os/image@${asked}`],
    ['/var/tmp/oci-directory', undefined],
    ['image', undefined],
  ])('%s', (name, expected) => {
    expect(digestedImage(name, found)).toBe(expected);
  });

  it('is nothing where no digest is known', () => {
    expect(digestedImage('quay.io/os/image', undefined)).toBeUndefined();
  });
});

// Seen of ostree 2026.4 in test/node-lab/finalization-lock.soak.test.ts; `rpm-ostree rebase` has --lock-finalization.
it('bootc loses the lock where it replaces what is staged, and rpm-ostree does not', () => {
  const never = () => Promise.reject(new Error('no command is run'));
  expect([bootc(never), rpmOstree(never)].map(({ name, keepsLock }) => [name, keepsLock])).toEqual([
    ['bootc', false],
    ['rpm-ostree', true],
  ]);
});
