import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { writeFileHook } from '../root-hooks.ts';
import { DRACUT, recipeWith } from './recipe.ts';

/**
 * Only the seed is looked at, and nothing is set up that Shale doesn't write: each module costs a minute in emulation.
 */
const CLOUD_INIT = `datasource_list: [NoCloud]
network: {config: disabled}
cloud_init_modules: [bootcmd, write-files]
cloud_config_modules: []
cloud_final_modules: []
`;

const UNITS = '/usr/lib/systemd/system';
const SELINUX = '/sysroot/etc/selinux';
/**
 * Debian's Ignition is built to relabel what it writes: from its mount stage on it wants a policy's name, and fails
 * without one. The machine has no SELinux, and ostree deploys nothing where /etc/selinux/config is and semodule is not.
 * So the file exists for those stages alone, in place of an Ignition that is built without relabelling.
 */
const SELINUX_CONFIG = {
  [`${UNITS}/ignition-mount.service.d/10-lab.conf`]: `[Service]
ExecStartPre=/bin/sh -c 'mkdir -p ${SELINUX} && echo SELINUXTYPE=none > ${SELINUX}/config'
`,
  [`${UNITS}/ignition-files.service.d/10-lab.conf`]: `[Service]
ExecStartPost=/bin/rm ${SELINUX}/config
`,
};

/**
 * A machine that sets itself up at its first boot: by Ignition in its initramfs, or by cloud-init. Ignition looks for
 * its config in QEMU's firmware configuration, and needs bash, and the programs that make file systems.
 */
export const FIRST_BOOT_RECIPE: RootfsRecipe = recipeWith({
  packages: ['cloud-init', 'ignition', 'dracut-network', 'curl', 'e2fsprogs', 'bash', 'kmod', 'lz4'],
  dracut: [
    ...DRACUT.filter((line) => !/^(dracutmodules|drivers|compress)=/.test(line)),
    // It is three times as large as without Ignition, and the firmware's reads are slow, too.
    'compress="lz4"',
    `dracutmodules=" bash base systemd systemd-initrd systemd-udevd udev-rules rootfs-block fs-lib kernel-modules dracut-systemd ostree ignition "`,
    'drivers=" virtio_pci virtio_blk ext4 qemu_fw_cfg "',
    `install_items+=" ${Object.keys(SELINUX_CONFIG).join(' ')} "`,
  ],
  hooks: [
    ...Object.entries({ '/etc/cloud/cloud.cfg.d/90-lab.cfg': CLOUD_INIT, ...SELINUX_CONFIG }).map(
      ([file, content]) => writeFileHook(file, content),
    ),
    // What Ignition labels files with, see above.
    '--customize-hook=ln -s true "$1"/usr/bin/setfiles',
    // Beside systemd-networkd it would configure the network, too.
    '--customize-hook=rm -f "$1"/etc/network/interfaces "$1"/usr/lib/udev/hwdb.bin',
  ],
});
