import { describe, expect, test } from 'vitest';
import { hasPrepareSoftReboot, isSameKernelSide } from './ostree.ts';

describe('isSameKernelSide', () => {
  const booted = { modules: 'a b', prepareRoot: 'c d', policy: 'e f' };
  const { policy: _, ...unlabelled } = booted;

  test.each([
    ['the same', booted, booted, true],
    ['the same, without SELinux', unlabelled, unlabelled, true],
    ['another kernel, initramfs or module', booted, { ...booted, modules: 'x b' }, false],
    ['another part of the initramfs, or its configuration', booted, { ...booted, prepareRoot: 'x d' }, false],
    ['no configuration any more', booted, { modules: 'a b', policy: 'e f' }, false],
    ['another policy', booted, { ...booted, policy: 'x f' }, false],
    ['a policy where there was none', unlabelled, booted, false],
    ['kernels that are at another place', { policy: 'e f' }, { policy: 'e f' }, false],
  ])('%s', (_name, from, next, expected) => {
    expect(isSameKernelSide(from, next)).toBe(expected);
  });
});

test.each([
  ['2022.7', false],
  ['2024.9', false],
  ['2025.2', false],
  ['2025.3', true],
  ['2025.10', true],
  ['2026.4', true],
  ['2027.1', true],
  ['', false],
  ['unknown', false],
  [undefined, false],
])('ostree %s can prepare a soft reboot: %s', (version, expected) => {
  expect(hasPrepareSoftReboot(version)).toBe(expected);
});
