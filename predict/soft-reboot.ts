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

/** @param isAllowed by the pool. */
export function softRebootPart({ actions, causes }: Decision, isAllowed: boolean): SoftRebootPart {
  const reboots = actions.some(({ type }) => type === 'Reboot');
  return { softReboot: (isAllowed && reboots && !causes.some(needsKernelStart)) || undefined };
}

/** @returns what a plan says of them. */
export function softRebootLines({ softReboot }: SoftRebootPart): string[] {
  return softReboot === undefined
    ? []
    : ['reboot: a soft reboot (userspace only) on nodes where bootc or ostree can keep the kernel running'];
}
