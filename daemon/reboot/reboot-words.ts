import { isSoftReboot } from '../../api/boot-id.ts';
import type { UpdatePlan, UpdateRecord } from '../../api/machine-config-node.ts';

/** Whether a reboot is one of the userspace alone. */
export type RebootKind = Pick<UpdatePlan, 'softReboot'>;

/** @returns how a reboot is called in messages: in each form that a sentence needs. */
export function rebootWords({ softReboot = false }: RebootKind): typeof FULL {
  return softReboot ? SOFT : FULL;
}

const FULL = {
  noun: 'a reboot',
  infinitive: 'reboot',
  progress: 'Rebooting',
  rebooting: 'Rebooting the node',
  rebooted: 'The node booted the target',
};
const SOFT: typeof FULL = {
  noun: 'a soft reboot',
  infinitive: 'reboot the userspace',
  progress: 'Soft-rebooting',
  rebooting: 'Rebooting the userspace; the kernel keeps running',
  rebooted: 'The node booted the target by a soft reboot; its kernel kept running',
};

/** How an update was made; softReboot: with the kernel running on. */
export type UpdateWay = 'live' | 'softReboot' | 'reboot';

/** @returns how an update was made that is over. */
export function wayOf({ bootIDBefore, bootIDAfter, softReboot = false }: UpdateRecord): UpdateWay {
  if (bootIDBefore === bootIDAfter) return 'live';
  return softReboot ? 'softReboot' : 'reboot';
}

/** @returns how the node has rebooted between two boots, whatever was planned. */
export function rebootBetween(before: string, after: string): RebootKind {
  return isSoftReboot(before, after) ? { softReboot: true } : {};
}

/** @returns the plan with how the node has rebooted between two boots, whatever was planned. */
export function asRebooted(plan: UpdatePlan, before: string, after: string): UpdatePlan {
  const { softReboot: _planned, ...rest } = plan;
  return { ...rest, ...rebootBetween(before, after) };
}
