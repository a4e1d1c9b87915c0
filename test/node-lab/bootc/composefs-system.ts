import { copyFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner, shellWords } from '../../../daemon/os/os-command.ts';
import { cachedDisk, createDisk, diskIn } from '../virtual-machine/cached-disk.ts';
import { EMULATED } from '../virtual-machine/disk.ts';
import { REGISTRY_IN_GUEST } from '../virtual-machine/stock-layer.ts';
import { startVirtualMachine } from '../virtual-machine/virtual-machine.ts';
import type { Installed, VirtualSystem } from '../virtual-machine/virtual-system.ts';
import { ONE_PROCESSOR, virtualRecipe } from './virtual-recipe.ts';

/** UEFI for virtual machines, of the package ovmf: its code, and the variables that a new machine has. */
export const FIRMWARE = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.fd';
const COMMAND_MS = 300_000;
/** In software emulation: the image is pulled, and each of its files is given its fs-verity digest. */
const INSTALL_MS = 1_500_000;
const GIB = 1024 ** 3;
/** bootc's partition for the firmware takes one of them. */
const DISK_BYTES = 8 * GIB;
const INSTALLER_BYTES = 3 * GIB;
const KERNEL_ARGUMENTS = [...EMULATED, 'systemd.default_device_timeout_sec=900'];

/**
 * @param files of bootc. @param recipe of what has them. @returns machines that bootc keeps without ostree, and that
 * UEFI and systemd-boot boot.
 */
export function composefsSystem(files: string, recipe = virtualRecipe): VirtualSystem {
  return {
    recipe: () => recipe(files),
    bootable: true,
    makeDisk,
    qemuArguments: async (directory) => {
      const variables = path.join(directory, 'variables.fd');
      await copyFile(VARIABLES, variables);
      return [
        ...ONE_PROCESSOR,
        ...['-drive', `if=pflash,unit=0,format=raw,readonly=on,file=${FIRMWARE}`],
        ...['-drive', `if=pflash,unit=1,format=raw,file=${variables}`],
      ];
    },
  };
}

function makeDisk(installed: Installed): Promise<string> {
  return cachedDisk([installed.image, INSTALL, DISK_BYTES], (directory) => install(installed, directory));
}

/**
 * The installer's network leads to the host, whose loopback is 10.0.2.2 there. $1: the registry's port, $2: its name,
 * $3: the image.
 */
const INSTALL = `set -e
udevadm settle --timeout=300
ip link set lo up
device=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip link set "$device" up
ip address add 10.0.2.15/24 dev "$device"
mkdir -p /etc/containers/registries.conf.d
printf '[[registry]]\\nprefix = "%s"\\nlocation = "10.0.2.2:%s"\\ninsecure = true\\n' "$2" "$1" > /etc/containers/registries.conf.d/50-lab.conf
bootc install to-disk --composefs-backend --bootloader=systemd --filesystem=ext4 --wipe --generic-image --disable-selinux \\
  --skip-fetch-check --source-imgref="docker://$3" --target-imgref="$3" \\
  ${KERNEL_ARGUMENTS.map((argument) => `--karg=${argument}`).join(' ')} /dev/disk/by-id/virtio-target 2>&1
sync`;

/** `bootc install to-disk`, by a machine that has a kernel with the firmware's file system and fs-verity. */
async function install(
  { image, archive, registryPort, signal }: Installed,
  directory: string,
): Promise<void> {
  const { rootfs } = archive;
  const disk = diskIn(directory);
  const installer = path.join(directory, 'installer.raw');
  await createDisk(installer, INSTALLER_BYTES);
  await createDisk(disk, DISK_BYTES);
  await osCommandRunner()(['mkfs.ext4', '-q', '-L', 'installer', '-d', rootfs, installer], {
    timeoutMs: COMMAND_MS,
    signal,
  });
  const modules = path.join(rootfs, 'usr/lib/modules');
  const [version = ''] = await readdir(modules);
  const append = ['root=LABEL=installer', 'rw', ...KERNEL_ARGUMENTS];
  const consoleFile = path.join(directory, 'console');
  await using machine = await startVirtualMachine({
    // The kernel is what is booted first: a disk of the machine's own is, too.
    disks: [],
    directory,
    consoleFile,
    qemuArguments: [
      ...ONE_PROCESSOR,
      ...['-kernel', path.join(modules, version, 'vmlinuz')],
      ...['-initrd', path.join(modules, version, 'initramfs.img')],
      ...['-append', append.join(' ')],
      ...diskArguments('installer', installer),
      ...diskArguments('target', disk),
    ],
  });
  await machine.up();
  const words = ['sh', '-c', INSTALL, 'sh', String(registryPort), REGISTRY_IN_GUEST, image];
  await machine.sh(shellWords(words), INSTALL_MS);
}

function diskArguments(name: string, file: string): string[] {
  const drive = `id=${name},file=${file},if=none,format=raw,cache=unsafe`;
  return ['-drive', drive, '-device', `virtio-blk-pci,drive=${name},serial=${name}`];
}
