import type { MachineConfiguration, StorageOverride } from '../api/machine-configuration.ts';
import type { Problem } from '../machineconfig/problem.ts';

/** What a MachineConfiguration says besides its policies, as OpenShift's operators mean it (openshift/api, operator/v1). */

type Spec = MachineConfiguration['spec'];

/** Why no update starts in the whole cluster. */
interface Suspension {
  readonly reason: 'Unmanaged' | 'Removed';
  /** A sentence without its period. */
  readonly why: string;
}

/**
 * @returns undefined where nodes are updated. Removed is refused: an operator that is asked to take itself away has nothing to
 *   take nodes back to, but nor does whoever asks want further updates.
 */
export function suspensionOf(spec: Spec): Suspension | undefined {
  const state = spec?.managementState;
  switch (state) {
    case 'Unmanaged':
      return {
        reason: state,
        why: 'spec.managementState of the MachineConfiguration is Unmanaged, so no update starts',
      };
    case 'Removed':
      return {
        reason: state,
        why: 'spec.managementState of the MachineConfiguration is Removed, which Shale refuses: nothing is removed, and no update starts; expected Managed or Unmanaged (shale uninstall removes Shale)',
      };
    default:
      return undefined;
  }
}

/** @returns the sections of storage that a change may differ in; an unknown one overrides nothing. */
export function storageOverrides(spec: Spec): ReadonlySet<StorageOverride> {
  return new Set(spec?.irreconcilableValidationOverrides?.storage ?? []);
}

/** Fields that Shale has. */
const TAKEN: ReadonlySet<string> = new Set([
  'nodeDisruptionPolicy',
  'shale',
  'managementState',
  'logLevel',
  'operatorLogLevel',
  'irreconcilableValidationOverrides',
]);

/** @returns the fields that Shale doesn't have, each with its place: they are refused, and nothing else of spec is. */
export function refusedSettings(spec: Spec): Problem[] {
  return Object.entries(spec ?? {}).flatMap(([name, value]) => {
    if (TAKEN.has(name) || isEmpty(value)) return [];
    return [{ path: `spec.${name}`, reason: 'is not supported', expected: 'to be omitted' }];
  });
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === 0) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
