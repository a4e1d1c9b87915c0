import { present } from '../../../api/present.ts';
import type { RootfsArchive } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import type { LabSystem } from '../lab-node.ts';
import { bootPreparedRoot, comingArchive, PREPARED_ROOT } from '../prepared-root.ts';
import { toolEntries } from '../tool-entries.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { installByBootc } from './install-bootc.ts';

/** @param bootc the program. @param packages more than it needs. @returns Debian's coming release with it. */
export function debianWith(bootc: string, packages: readonly string[]): Promise<RootfsArchive> {
  return comingArchive(bootcRecipe(bootc, packages));
}

/** @param archive what has bootc. @returns machines that are installed and updated by it. */
export function bootcSystem(archive: LabSystem['archive']): LabSystem {
  return {
    ...PREPARED_ROOT,
    archive,
    entries: toolEntries,
    bootable: true,
    install: installByBootc,
    // bootc pulls by itself.
    boot: (dir, source, signal, bootMs) =>
      bootPreparedRoot(dir, source, signal, { network: 'shared', ...present({ bootMs }) }),
  };
}
