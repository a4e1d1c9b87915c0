import { expect, test } from 'vitest';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { refusedSettings, storageOverrides, suspensionOf } from './settings.ts';

type Spec = MachineConfiguration['spec'];

test.each<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ['Managed', undefined],
  ['Force', undefined],
  ['Unmanaged', 'Unmanaged'],
  ['Removed', 'Removed'],
])('managementState %s suspends updates by %s', (managementState, reason) => {
  const spec: Spec = managementState === undefined ? {} : { managementState };
  expect(suspensionOf(spec)?.reason).toBe(reason);
});

test('why updates are suspended names the field and, for Removed, what to do instead', () => {
  expect(suspensionOf({ managementState: 'Unmanaged' })?.why).toContain('spec.managementState');
  expect(suspensionOf({ managementState: 'Removed' })?.why).toContain('shale uninstall');
  expect(suspensionOf(undefined)).toBeUndefined();
});

test('sections that a change may differ in', () => {
  expect([
    ...storageOverrides({ irreconcilableValidationOverrides: { storage: ['Raid', 'Disks'] } }),
  ]).toEqual(['Raid', 'Disks']);
  expect(storageOverrides({ irreconcilableValidationOverrides: {} }).size).toBe(0);
  expect(storageOverrides(undefined).size).toBe(0);
});

const machines = (mode: string) => ({
  resource: 'machinesets',
  apiGroup: 'machine.openshift.io',
  selection: { mode },
});

test.each<[Spec, string[]]>([
  [undefined, []],
  [{ nodeDisruptionPolicy: {}, shale: {}, managementState: 'Unmanaged', operatorLogLevel: 'Debug' }, []],
  [{ irreconcilableValidationOverrides: { storage: ['Disks'] } }, []],
  [{ logLevel: 'Normal', forceRedeploymentReason: '', failedRevisionLimit: 0, observedConfig: null }, []],
  [{ logLevel: 'Debug' }, []],
  [
    { managedBootImages: { machineManagers: [] }, failedRevisionLimit: 3 },
    ['spec.managedBootImages', 'spec.failedRevisionLimit'],
  ],
  [{ managedBootImages: { machineManagers: [machines('All')] } }, ['spec.managedBootImages']],
  [
    { managedBootImages: { machineManagers: [machines('None'), machines('Partial')] } },
    ['spec.managedBootImages'],
  ],
  [{ managedBootImages: { machineManagers: [machines('None')] } }, []],
  [{ bootImageSkewEnforcement: { mode: 'Automatic' } }, ['spec.bootImageSkewEnforcement']],
  [{ bootImageSkewEnforcement: { mode: 'Manual', manual: {} } }, ['spec.bootImageSkewEnforcement']],
  [{ bootImageSkewEnforcement: { mode: 'None' } }, []],
])('%j: what is refused', (spec, paths) => {
  expect(refusedSettings(spec).map(({ path }) => path)).toEqual(paths);
});

test.each<[Spec, string, string]>([
  [
    { managedBootImages: { machineManagers: [machines('All')] } },
    'publishes an image',
    'shale node image POOL',
  ],
  [{ bootImageSkewEnforcement: { mode: 'Automatic' } }, 'shale_operator_boot_image_lag', 'mode None'],
])('%j: what Shale does instead, and what to write, is told', (spec, reason, expected) => {
  expect(refusedSettings(spec)).toEqual([
    expect.objectContaining({
      reason: expect.stringContaining(reason),
      expected: expect.stringContaining(expected),
    }),
  ]);
});
