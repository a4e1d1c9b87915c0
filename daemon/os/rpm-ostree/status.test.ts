import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { imageOfReference, parseRpmOstreeStatus, rpmOstreeDeployments } from './status.ts';

const transcript = (name: string) =>
  parseRpmOstreeStatus(readFileSync(path.join(import.meta.dirname, 'transcripts', name), 'utf8'));
const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const image = (digit: string) => `quay.io/example/os@${digest(digit)}`;

describe('rpmOstreeDeployments', () => {
  it('knows the image of each by digest, also where it was installed by tag', () => {
    const plain = {
      isBooted: false,
      isPinned: false,
      packages: { installed: [], removed: [] },
    };
    expect([...rpmOstreeDeployments(transcript('2026.2-staged.json'))]).toEqual([
      [`${'2'.repeat(64)}.0`, { ...plain, image: image('b') }],
      [`${'1'.repeat(64)}.0`, { ...plain, isBooted: true, image: image('a') }],
      [`${'0'.repeat(64)}.1`, { ...plain, isPinned: true }],
    ]);
  });

  it('knows what was installed on it and removed from it', () => {
    const text = readFileSync(path.join(import.meta.dirname, 'transcripts/2026.2-layered.json'), 'utf8');
    const changed = text.replace(
      '"requested-base-removals": []',
      '"requested-base-removals": ["kernel-core", "kernel"]',
    );
    const [deployment] = rpmOstreeDeployments(parseRpmOstreeStatus(changed)).values();
    expect(deployment?.packages).toEqual({ installed: ['usbguard'], removed: ['kernel', 'kernel-core'] });
  });

  it.each([
    ['2021.1-booted.json', undefined],
    ['2026.2-layered.json', image('a')],
    ['2026.2-transaction.json', image('a')],
  ])('%s: %s', (name, expected) => {
    const [deployment] = [...rpmOstreeDeployments(transcript(name)).values()];
    expect(deployment?.image).toBe(expected);
  });
});

describe('imageOfReference', () => {
  it.each([
    'ostree-unverified-registry:quay.io/example/os:stable',
    'ostree-unverified-image:docker://quay.io/example/os:stable',
    'ostree-unverified-image:registry:quay.io/example/os',
    'ostree-image-signed:docker://quay.io/example/os:stable',
    'ostree-remote-registry:fedora:quay.io/example/os:stable',
    'ostree-remote-image:fedora:docker://quay.io/example/os',
    `ostree-unverified-registry:quay.io/example/os@${digest('a')}`,
  ])('%s is of a registry', (reference) => {
    expect(imageOfReference(reference, digest('a'))).toBe(image('a'));
  });

  it.each([
    'ostree-unverified-image:oci:/var/tmp/os',
    'ostree-unverified-image:containers-storage:localhost/os',
    'fedora:fedora/x86_64/coreos/stable',
    '',
  ])('%j is not', (reference) => {
    expect(imageOfReference(reference, digest('a'))).toBeUndefined();
  });
});

describe('parseRpmOstreeStatus', () => {
  it.each(['', '{}', '{"deployments":[{"osname":"x"}]}', '[]'])('refuses %j', (text) => {
    expect(() => parseRpmOstreeStatus(text)).toThrow('rpm-ostree status');
  });
});
