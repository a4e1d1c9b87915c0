import { present } from '../../../api/present.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { RootfsArchive } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import type { LabSystem } from '../lab-node.ts';
import { text } from '../lab-updates.ts';
import { bootPreparedRoot, comingArchive, PREPARED_ROOT } from '../prepared-root.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { installByBootc, PREPARE_ROOT } from './install-bootc.ts';

/** @returns what an image needs to be bootc's, and to be pulled from a registry without TLS. */
function bootcEntries(registry: string): LayerEntry[] {
  return [
    text('/usr/lib/ostree/prepare-root.conf', PREPARE_ROOT),
    text(
      '/etc/containers/registries.conf.d/50-lab.conf',
      `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`,
    ),
  ];
}

/** @param bootc the program. @param packages more than it needs. @returns Debian's coming release with it. */
export function debianWith(bootc: string, packages: readonly string[]): Promise<RootfsArchive> {
  return comingArchive(bootcRecipe(bootc, packages));
}

/** @param archive what has bootc. @returns machines that are installed and updated by it. */
export function bootcSystem(archive: LabSystem['archive']): LabSystem {
  return {
    ...PREPARED_ROOT,
    archive,
    entries: bootcEntries,
    bootable: true,
    install: installByBootc,
    // bootc pulls by itself.
    boot: (dir, source, signal, bootMs) =>
      bootPreparedRoot(dir, source, signal, { network: 'shared', ...present({ bootMs }) }),
  };
}
