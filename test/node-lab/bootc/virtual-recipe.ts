import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { shellWords } from '../../../daemon/os/os-command.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { text } from '../lab-updates.ts';
import { COMING_RECIPE } from '../prepared-root.ts';
import { DRACUT, recipeWith } from '../virtual-machine/recipe.ts';
import { FSTAB, REGISTRY_IN_GUEST, virtualMachineLayer } from '../virtual-machine/stock-layer.ts';
import { PREPARE_ROOT } from './install-bootc.ts';

/** bootc makes file systems and installs the bootloader by the programs of the image; and it may not run without ostree's library. */
const PACKAGES = [
  ...['ca-certificates', 'dosfstools', 'e2fsprogs', 'fdisk', 'iproute2', 'podman', 'procps', 'skopeo'],
  ...['systemd-boot', 'systemd-boot-efi', 'util-linux'],
];

/** As bootc's base images have it (baseimage/dracut): the parts of the initramfs that set up a root with ostree, and without. */
const dracut = DRACUT.map((line) =>
  line.replace(' ostree "', ' ostree bootc "').replace('ext4 "', 'ext4 erofs overlay "'),
);

/**
 * Arguments of QEMU for that release's kernel: in software emulation one processor runs into an instruction that another one is
 * patching (seen with QEMU 7.2 and Linux 7.2: Oops: int3 in sched_clock_cpu, or a hang).
 */
export const ONE_PROCESSOR = ['-smp', '1'] as const;

/**
 * @param files of bootc, which its `make install` wrote; others make another root file system.
 * @returns Debian's coming release with a kernel and bootc, which installs it with ostree or without.
 */
export function virtualRecipe(files: string): RootfsRecipe {
  const hash = createHash('sha256');
  for (const name of ['usr/bin/bootc', 'usr/lib/bootc/initramfs-setup'])
    hash.update(readFileSync(path.join(files, name)));
  const install = `${shellWords(['cp', '-R', '--preserve=mode,links', `${files}/.`])} "$1"/ # ${hash.digest('hex')}`;
  // bootc installs from nothing without it (docs/src/bootc-images.md), with or without ostree.
  const prepareRoot = `mkdir -p "$1"/usr/lib/ostree && printf '${PREPARE_ROOT.replaceAll('\n', '\\n')}' > "$1"/usr/lib/ostree/prepare-root.conf`;
  return recipeWith({
    ...COMING_RECIPE,
    ...{ packages: PACKAGES, dracut },
    // The package of the kernel makes an initramfs, with what the configuration of dracut names.
    hooks: [...[install, prepareRoot].map((hook) => `--essential-hook=${hook}`), ...COMING_RECIPE.hooks],
  });
}

/**
 * @param daemonArguments more of them.
 * @returns what its stock image has above Debian: the lab's registry is without TLS for bootc, too.
 */
export const virtualLayer = (...daemonArguments: readonly string[]): readonly LayerEntry[] => [
  ...virtualMachineLayer(...daemonArguments),
  text(
    '/etc/containers/registries.conf.d/50-lab.conf',
    `[[registry]]\nlocation = "${REGISTRY_IN_GUEST}"\ninsecure = true\n`,
  ),
];

/** @param layer of virtualLayer. @returns it for a machine without a partition of its own for /boot: the firmware's is there. */
export function withoutBootPartition(layer: readonly LayerEntry[]): readonly LayerEntry[] {
  return [
    ...layer.filter(({ path }) => path !== '/etc/fstab'),
    text('/etc/fstab', FSTAB.replace(/^LABEL=boot .*\n/m, '')),
  ];
}
