import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import type { Decision } from '../disruption/actions.ts';
import { needsKernelStart } from '../disruption/kernel-start.ts';

/** What soft reboots add to the plan of a pool. */
export interface SoftRebootPart {
  /**
   * The pool allows soft reboots, and the change doesn't affect the kernel. Each daemon checks whether its node
   * supports them.
   */
  readonly softReboot?: true | undefined;
}

/** @param pool undefined where the change creates none. */
export function softRebootPart(
  { actions, causes }: Decision,
  pool: MachineConfigPool | undefined,
): SoftRebootPart {
  const isAllowed = pool !== undefined && settingOf(pool, 'softReboot') === true;
  const reboots = actions.some(({ type }) => type === 'Reboot');
  return { softReboot: (isAllowed && reboots && !causes.some(needsKernelStart)) || undefined };
}
