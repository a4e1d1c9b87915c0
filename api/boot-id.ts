/**
 * Which boot a node is in, as `status.bootID` of its MachineConfigNode has it. A soft reboot starts all of userspace
 * again and leaves the kernel running, so the kernel's boot ID, which is what a kubelet reports, stays the same. Here a
 * boot is one of the userspace: the kernel's ID, with the number of soft reboots since where there were any.
 */

const SOFT_BOOT = /\+\d+$/;

/** @param kernel its boot id. @param softReboots how often the userspace was started again since the kernel was. */
export function bootIDOf(kernel: string, softReboots: number): string {
  return softReboots === 0 ? kernel : `${kernel}+${softReboots}`;
}

/** @returns the kernel's boot id, as a kubelet reports it. */
export function kernelBootID(bootID: string): string {
  return bootID.replace(SOFT_BOOT, '');
}

/** @returns whether the node was started again between two boots, and its kernel was not. */
export function isSoftReboot(before: string, after: string): boolean {
  return before !== after && kernelBootID(before) === kernelBootID(after);
}
