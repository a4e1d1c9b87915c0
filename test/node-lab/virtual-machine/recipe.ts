import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { writeFileHook } from '../root-hooks.ts';

/** What the initramfs has to do: find the root by its label, and have ostree-prepare-root make a deployment of it. */
export const DRACUT: readonly string[] = [
  'hostonly="no"',
  'hostonly_cmdline="no"',
  'dracutmodules=" base systemd systemd-initrd systemd-udevd udev-rules rootfs-block fs-lib kernel-modules dracut-systemd ostree "',
  'drivers=" virtio_pci virtio_blk ext4 "',
  'filesystems=" ext4 "',
  // Without hardware's help, unpacking takes longer than reading.
  'compress="cat"',
];

interface Additions extends Pick<RootfsRecipe, 'suite' | 'aptOptions'> {
  /** More packages. */
  readonly packages: readonly string[];
  /** dracut.conf(5). */
  readonly dracut: readonly string[];
  /** More hooks, before the initramfs is made. */
  readonly hooks: readonly string[];
}

/**
 * @returns a machine with systemd, ostree and a kernel of its own, for virtio devices only. Kernel and initramfs lie
 *   where ostree looks for those of a deployment (ostree, "Adapting existing systems").
 */
export function recipeWith({ packages, dracut, hooks, ...release }: Additions): RootfsRecipe {
  return {
    ...release,
    packages: [
      ...['systemd', 'systemd-sysv', 'udev', 'dbus', 'ostree', 'ostree-boot', 'dracut'],
      ...['linux-image-cloud-amd64', 'qemu-guest-agent'],
      ...packages,
    ],
    hooks: [
      writeFileHook('/etc/dracut.conf.d/lab.conf', `${dracut.join('\n')}\n`, 'essential'),
      ...hooks,
      '--customize-hook=' +
        'version=$(ls "$1"/usr/lib/modules) && modules=/usr/lib/modules/$version' +
        // Packages of newer kernels have it there already, as another name of the same file.
        ' && ln -f "$1/boot/vmlinuz-$version" "$1$modules/vmlinuz"' +
        ' && chroot "$1" dracut --force "$modules/initramfs.img" "$version"' +
        ' && rm -r "$1"/boot/*',
      // What nothing here uses: an update handles every file of an image, and nothing is quick here.
      '--customize-hook=cd "$1"/usr && rm -rf lib/udev/hwdb.* share/perl lib/*/perl lib/*/gconv share/zoneinfo lib/dracut',
    ],
  };
}

export const VIRTUAL_MACHINE_RECIPE: RootfsRecipe = recipeWith({ packages: [], dracut: DRACUT, hooks: [] });
