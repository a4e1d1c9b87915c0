import { expect, test } from 'vitest';
import { compareApkVersions } from './apk-order.ts';

/** By apk-package(5): each comes before the next. */
const ASCENDING = [
  '0.1.0_alpha_pre1',
  '0.1.0_alpha',
  '0.1.0_alpha1',
  '0.1.0_alpha2',
  '0.1.0_alpha_p1',
  '0.1.0_beta1',
  '0.1.0_pre1',
  '0.1.0_rc1-r0',
  '0.1.0_rc1-r3',
  '0.1.0',
  '0.1.0-r0',
  '0.1.0-r9',
  '0.1.0-r10',
  '0.1.0_cvs20200101',
  '0.1.0_svn1',
  '0.1.0_git20261129_rc1',
  '0.1.0_git20261129-r0',
  '0.1.0_git20261129-r1',
  '0.1.0_git20261129~1f',
  '0.1.0_hg1',
  '0.1.0_p0',
  '0.1.0_p1',
  '0.1.0_p1-r1',
  '0.1.0_p1_p1',
  '0.1.0a',
  '0.1.0a-r1',
  '0.1.0a~1f',
  '0.1.0a~2e-r1',
  '0.1.0b_alpha',
  '0.1.0b',
  '0.1.0.0',
  '0.1.0.01a',
  '0.1.0.1',
  '0.1.001',
  '0.1.010',
  '0.1.09',
  '0.1.1',
  '0.2',
  '1.0',
  '1.2',
  '1.10',
  '02',
  '3.4',
  '20261129',
];

test('versions are in the order of apk', () => {
  for (const [left, a] of ASCENDING.entries()) {
    for (const [right, b] of ASCENDING.entries()) {
      expect([a, b, Math.sign(compareApkVersions(a, b))]).toEqual([a, b, Math.sign(left - right)]);
    }
  }
});

test.each([
  ['1.0', '1.0'],
  ['1.0_git', '1.0_git'],
  ['1.0-r1', '1.0-r01'],
])('%s and %s are the same', (a, b) => {
  expect(compareApkVersions(a, b)).toBe(0);
  expect(compareApkVersions(b, a)).toBe(0);
});
