import type { DisruptionCause } from '../api/disruption-action.ts';

/**
 * Where the kernel and its modules are configured while they start: a soft reboot neither applies nor reverts what is
 * there.
 */
const READ_AT_KERNEL_START = [
  '/etc/dracut.conf.d',
  '/etc/modprobe.d',
  '/etc/modules-load.d',
  '/etc/selinux',
  '/etc/sysctl.conf',
  '/etc/sysctl.d',
  '/etc/udev',
  '/usr/lib/bootc/kargs.d',
  '/usr/lib/firmware',
  '/usr/lib/modprobe.d',
  '/usr/lib/modules',
  '/usr/lib/modules-load.d',
  '/usr/lib/sysctl.d',
  '/usr/lib/udev',
];
/** Fields that say nothing about the kernel: the tool that manages the host compares the kernels itself. */
const BASE_IMAGE_FIELDS: ReadonlySet<string> = new Set(['baseImage', 'osImageURL']);

/** @returns whether a change takes effect only when the kernel starts, so that a soft reboot is not enough. */
export function needsKernelStart({ kind, subject }: DisruptionCause): boolean {
  if (kind === 'field') return !BASE_IMAGE_FIELDS.has(subject);
  return READ_AT_KERNEL_START.some((place) => subject === place || subject.startsWith(`${place}/`));
}
