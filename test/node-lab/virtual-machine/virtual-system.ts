import { present } from '../../../api/present.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { type RootfsArchive, rootfsSource } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { ensureDisk } from './disk.ts';
import { VIRTUAL_MACHINE_RECIPE } from './recipe.ts';

/** What is installed on a machine's disk. */
export interface Installed {
  /** By the name that the machine has for the registry. */
  readonly image: DigestedPullspec;
  /** The image's first layer. */
  readonly archive: RootfsArchive;
  /** Its second one. */
  readonly stock: readonly LayerEntry[];
  /** Of the registry, on the host's loopback. */
  readonly registryPort: number;
  readonly signal: AbortSignal;
}

/** What a virtual machine is made of, and how that comes to its disk. */
export interface VirtualSystem {
  recipe(): RootfsRecipe;
  /** Whether its images are to be as bootc takes them. */
  readonly bootable?: boolean;
  /** @returns a raw disk that others use, too, and nobody writes to. */
  makeDisk(installed: Installed): Promise<string>;
  /** @param directory to write to. @returns arguments of QEMU for what its kernel and firmware need. */
  qemuArguments?(directory: string): Promise<readonly string[]>;
}

/**
 * @param recipe of systemd, ostree and a kernel; no more than that unless given. @param firstBootArguments as of
 *   ensureDisk.
 * @returns machines that ostree alone installs and updates, and a BIOS boots.
 */
export function ostreeSystem(
  recipe: RootfsRecipe = VIRTUAL_MACHINE_RECIPE,
  firstBootArguments?: readonly string[],
): VirtualSystem {
  return {
    recipe: () => recipe,
    makeDisk: async ({ image, archive, stock, signal }) =>
      ensureDisk({
        image,
        source: await rootfsSource(archive, stock),
        signal,
        ...present({ firstBootArguments }),
      }),
  };
}
