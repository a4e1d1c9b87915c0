/**
 * A soft reboot starts all of the userspace anew and leaves the kernel running, whose boot id so stays the same. What the
 * daemon calls a boot is one of the userspace: the kernel's id, with the number of soft reboots since where there were any.
 */

const SOFT_BOOT = /\+\d+$/;

/** @param kernel its boot id. @param softReboots how often the userspace was started anew since the kernel was. */
export function bootIDOf(kernel: string, softReboots: number): string {
  return softReboots === 0 ? kernel : `${kernel}+${softReboots}`;
}

/** @returns the kernel's boot id, as a kubelet reports it. */
export function kernelBootID(bootID: string): string {
  return bootID.replace(SOFT_BOOT, '');
}

/** @returns whether the node was started anew between two boots, and its kernel was not. */
export function isSoftReboot(before: string, after: string): boolean {
  return before !== after && kernelBootID(before) === kernelBootID(after);
}
