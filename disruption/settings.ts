import { z } from 'zod';
import type { MachineConfiguration, StorageOverride } from '../api/machine-configuration.ts';
import type { Problem } from '../machineconfig/problem.ts';

/**
 * What a MachineConfiguration says besides its policies, as OpenShift's operators mean it (openshift/api, operator/v1).
 */

type Spec = MachineConfiguration['spec'];

/**
 * @returns why no update starts in the whole cluster, as a sentence without its period; undefined where nodes are
 *   updated. Removed is refused: an operator that is asked to take itself away has nothing to take nodes back to, but
 *   the request also means that no update is desired.
 */
export function suspensionOf(
  spec: Spec,
): { readonly reason: 'Unmanaged' | 'Removed'; readonly why: string } | undefined {
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

interface RefusedField {
  readonly reason: string;
  readonly expected: string;
  /** The value that asks for what Shale does anyway, which isn't refused. */
  readonly asksNothing: z.ZodType;
}

const NO_SELECTION = z.object({ selection: z.object({ mode: z.literal('None') }) });

/** Fields about the images that new machines boot: Shale has no Machine API, and says what it has instead. */
const BOOT_IMAGES: Readonly<Record<string, RefusedField>> = {
  managedBootImages: {
    reason:
      'is not supported, because Shale does not change what machines are created from; it publishes an image for new nodes of each pool in layered mode',
    expected:
      'to be omitted, and templates of machines to name the image of status.bootImage of the MachineConfigPool (shale node image POOL)',
    asksNothing: z.object({ machineManagers: z.array(NO_SELECTION).min(1) }),
  },
  bootImageSkewEnforcement: {
    reason:
      'is not supported, because an old boot image stops no rollout in Shale: a new node is updated to the target of its pool before pods are scheduled on it, if it has the startup taint; shale doctor and shale_operator_boot_image_lag report old boot images',
    expected: 'mode None, or to be omitted',
    asksNothing: z.object({ mode: z.literal('None') }),
  },
};

/** @returns the fields that Shale doesn't have, each with its place: they are refused, and nothing else of spec is. */
export function refusedSettings(spec: Spec): Problem[] {
  return Object.entries(spec ?? {}).flatMap(([name, value]) => {
    if (TAKEN.has(name) || isEmpty(value)) return [];
    const path = `spec.${name}`;
    const field = Object.hasOwn(BOOT_IMAGES, name) ? BOOT_IMAGES[name] : undefined;
    if (field === undefined) return [{ path, reason: 'is not supported', expected: 'to be omitted' }];
    const { reason, expected, asksNothing } = field;
    return asksNothing.safeParse(value).success ? [] : [{ path, reason, expected }];
  });
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === 0) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
