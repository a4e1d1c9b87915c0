import { expect, test } from 'vitest';
import { bootIDOf, isSoftReboot, kernelBootID } from './boot-id.ts';

const kernel = '4f8f4a3e-52f4-4d0b-9b6c-1f9f4c1d1f11';

test('a boot of the kernel has the kernel’s own id, a soft one its number besides', () => {
  expect([bootIDOf(kernel, 0), bootIDOf(kernel, 12)]).toEqual([kernel, `${kernel}+12`]);
  expect([kernel, `${kernel}+12`].map(kernelBootID)).toEqual([kernel, kernel]);
});

test.each([
  ['no reboot', kernel, kernel, false],
  ['a first one', kernel, `${kernel}+1`, true],
  ['a second one', `${kernel}+1`, `${kernel}+2`, true],
  ['a full one', kernel, 'another', false],
  ['a full one after a soft one', `${kernel}+1`, 'another', false],
])('%s', (_name, before, after, expected) => {
  expect(isSoftReboot(before, after)).toBe(expected);
});
