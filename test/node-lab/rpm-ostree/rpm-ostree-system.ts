import { present } from '../../../api/present.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { LabSystem } from '../lab-node.ts';
import { text } from '../lab-updates.ts';
import { bootPreparedRoot, comingArchive, PREPARED_ROOT } from '../prepared-root.ts';
import { toolEntries } from '../tool-entries.ts';
import { installByRpmOstree } from './install-rpm-ostree.ts';
import { REPOSITORY, rpmOstreeRecipe } from './rpm-ostree-recipe.ts';

/** What rpm-ostree needs of a container: bubblewrap sets up the loopback of a network of its own. */
const CONTAINER = ['--capability=CAP_NET_ADMIN', '--bind=/dev/fuse'];

/** @returns the same, and a repository of packages. */
function rpmOstreeEntries(registry: string): LayerEntry[] {
  const packages = `[lab]\nname=lab\nbaseurl=file://${REPOSITORY}\ngpgcheck=0\n`;
  return [...toolEntries(registry), text('/etc/yum.repos.d/lab.repo', packages)];
}

/**
 * @param files of rpm-ostree. @param recipe of what has them. @returns Debian's coming release, installed and updated
 * by it.
 */
export function rpmOstreeSystem(files: string, recipe = rpmOstreeRecipe): LabSystem {
  return {
    ...PREPARED_ROOT,
    archive: () => comingArchive(recipe(files)),
    entries: rpmOstreeEntries,
    bootable: true,
    install: installByRpmOstree,
    // rpm-ostree pulls by itself.
    boot: (dir, source, signal, bootMs) =>
      bootPreparedRoot(dir, source, signal, {
        network: 'shared',
        nspawnArguments: CONTAINER,
        ...present({ bootMs }),
      }),
  };
}
