import { expect, test } from 'vitest';
import {
  formatMachine,
  formatMachineOwner,
  isSameOwner,
  type MachineOwner,
  parseMachine,
  parseMachineOwner,
} from './machine-owner.ts';

const owner: MachineOwner = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' };

test('an owner and a Machine are read as they were written', () => {
  expect(formatMachineOwner(owner)).toBe('MachineDeployment default/workers');
  expect(parseMachineOwner(formatMachineOwner(owner))).toEqual(owner);
  const machine = { namespace: 'default', name: 'workers-7xq2.a' };
  expect(parseMachine(formatMachine(machine))).toEqual(machine);
});

test.each([
  ['', 'expected an owner'],
  ['MachineDeployment', 'no "/"'],
  ['MachinePool default/workers', 'MachineDeployment or KubeadmControlPlane'],
  ['MachineDeployment default/workers/a', "an object's name"],
  ['MachineDeployment Default/workers', 'the name of a namespace'],
  ['MachineDeployment default/workers extra', 'more than one space'],
])('%j is no owner', (text, why) => {
  expect(() => parseMachineOwner(text)).toThrow(why);
});

test.each(['workers', '/workers', 'default/', 'a/b/c'])('%j is no Machine', (text) => {
  expect(() => parseMachine(text)).toThrow('expected a Machine');
});

test('owners differ by kind, namespace and name', () => {
  expect(isSameOwner(owner, { ...owner })).toBe(true);
  for (const other of [{ kind: 'KubeadmControlPlane' }, { namespace: 'x' }, { name: 'x' }] as const)
    expect(isSameOwner(owner, { ...owner, ...other })).toBe(false);
});
