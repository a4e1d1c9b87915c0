import type { MachineConfigPool, MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';

/**
 * @returns what the updates of a pool wait for. An operator before 0.2 reports the first of them only, as the reason of
 *   the condition.
 */
export function heldUpdates({
  status = {},
}: MachineConfigPool): NonNullable<MachineConfigPoolStatus['heldUpdates']> {
  const condition = status.conditions?.find(({ type }) => type === 'UpdatesHeld');
  return status.heldUpdates ?? (condition?.status === 'True' ? [condition] : []);
}
