import { existsSync } from 'node:fs';
import path from 'node:path';
import { BOOT_CODE } from './disk.ts';

const PROGRAMS: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  setfiles: 'policycoreutils',
  extlinux: 'extlinux',
  sfdisk: 'fdisk',
};

/**
 * @param missingForMachines why no machine can be made here at all, where that is so. @param files more than every one
 *   needs, with the packages that they are of.
 * @returns why no virtual machine can be booted here, in one line; undefined when one can.
 */
export function missingForVirtualMachines(
  missingForMachines: string | undefined,
  env: NodeJS.ProcessEnv,
  files: Readonly<Record<string, string>> = {},
): string | undefined {
  if (env['SHALE_NO_QEMU'] !== undefined) return 'SHALE_NO_QEMU is set';
  if (missingForMachines !== undefined) return missingForMachines;
  if (process.arch !== 'x64') return `the virtual machine is an x86-64 one, this machine is ${process.arch}`;
  const directories = [...(env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];
  const missing = Object.entries(PROGRAMS)
    .filter(([program]) => !directories.some((directory) => existsSync(path.join(directory, program))))
    .map(([, packageName]) => packageName);
  for (const [file, packageName] of Object.entries({ [BOOT_CODE]: 'syslinux-common', ...files })) {
    if (!existsSync(file)) missing.push(packageName);
  }
  return missing.length === 0
    ? undefined
    : `virtual machines need these Debian packages: ${missing.join(' ')}`;
}
