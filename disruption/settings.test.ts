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
])('%j: what is refused', (spec, paths) => {
  expect(refusedSettings(spec).map(({ path }) => path)).toEqual(paths);
});
