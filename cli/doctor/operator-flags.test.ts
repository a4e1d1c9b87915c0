import { expect, test } from 'vitest';
import type { Deployment } from '../../api/kubernetes.ts';
import { flagValues, hasFlag } from './operator-flags.ts';

const operator = (...args: string[]) =>
  ({ spec: { template: { spec: { containers: [{ args }] } } } }) as unknown as Deployment;

test.each<[why: string, args: string[], values: string[]]>([
  ['is not set', ['operator', '--engine-image', 'x'], []],
  ['has a value of its own', ['operator', '--engine', 'none', '--engine-image', 'x'], ['none']],
  ['has its value behind =', ['operator', '--engine=tcp://engine:2376'], ['tcp://engine:2376']],
  ['has several values', ['operator', '--engine', 'a', 'b', '--engine-image', 'x'], ['a', 'b']],
  ['is the last word', ['operator', '--engine'], []],
])('the values of a flag that %s', (_why, args, values) => {
  expect(flagValues(operator(...args), '--engine')).toEqual(values);
});

test('a flag is set with a value or without, and another with the same beginning is another', () => {
  expect(hasFlag(operator('operator', '--engine-host-users'), '--engine-host-users')).toBe(true);
  expect(hasFlag(operator('operator', '--engine=pod'), '--engine')).toBe(true);
  expect(hasFlag(operator('operator', '--engine-image', 'x'), '--engine')).toBe(false);
  expect(hasFlag(undefined, '--engine')).toBe(false);
  expect(flagValues(undefined, '--engine')).toEqual([]);
});
