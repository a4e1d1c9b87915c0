import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { COMING_RECIPE } from '../prepared-root.ts';
import { copyFilesHook, writeFileHook } from '../root-hooks.ts';
import { PREPARE_ROOT, PREPARE_ROOT_FILE, registryWithoutTls } from '../tool-entries.ts';
import { DRACUT, recipeWith } from '../virtual-machine/recipe.ts';
import { REGISTRY_IN_GUEST, virtualMachineLayer, withFileSystems } from '../virtual-machine/stock-layer.ts';

/**
 * bootc makes file systems and installs the bootloader by the programs of the image; and it may not run without
 * ostree's library.
 */
const PACKAGES = [
  ...['ca-certificates', 'dosfstools', 'e2fsprogs', 'fdisk', 'iproute2', 'podman', 'procps', 'skopeo'],
  ...['systemd-boot', 'systemd-boot-efi', 'util-linux'],
];

/**
 * As bootc's base images have it (baseimage/dracut): the parts of the initramfs that set up a root with ostree, and
 * without.
 */
const dracut = DRACUT.map((line) =>
  line.replace(' ostree "', ' ostree bootc "').replace('ext4 "', 'ext4 erofs overlay "'),
);

/**
 * Arguments of QEMU for that release's kernel: in software emulation one processor runs into an instruction that
 * another one is patching (seen with QEMU 7.2 and Linux 7.2: Oops: int3 in sched_clock_cpu, or a hang).
 */
export const ONE_PROCESSOR = ['-smp', '1'] as const;

/**
 * @param files of bootc, which its `make install` wrote; others make another root file system.
 * @returns Debian's coming release with a kernel and bootc, which installs it with ostree or without.
 */
export function virtualRecipe(files: string): RootfsRecipe {
  const programs = ['usr/bin/bootc', 'usr/lib/bootc/initramfs-setup'];
  return recipeWith({
    ...COMING_RECIPE,
    packages: PACKAGES,
    dracut,
    // The package of the kernel makes an initramfs, with what the configuration of dracut names.
    hooks: [
      copyFilesHook(files, programs, 'essential'),
      // bootc installs from nothing without it (docs/src/bootc-images.md), with or without ostree.
      writeFileHook(PREPARE_ROOT_FILE, PREPARE_ROOT, 'essential'),
      ...COMING_RECIPE.hooks,
    ],
  });
}

/**
 * @param daemonArguments more of them.
 * @returns what its stock image has above Debian: the lab's registry is without TLS for bootc, too.
 */
export const virtualLayer = (...daemonArguments: readonly string[]): readonly LayerEntry[] => [
  ...virtualMachineLayer(...daemonArguments),
  registryWithoutTls(REGISTRY_IN_GUEST),
];

/**
 * @param layer of virtualLayer. @returns it for a machine without a partition of its own for /boot: the firmware's is
 * there.
 */
export function withoutBootPartition(layer: readonly LayerEntry[]): readonly LayerEntry[] {
  return withFileSystems(layer, (fstab) => fstab.replace(/^LABEL=boot .*\n/m, ''));
}
