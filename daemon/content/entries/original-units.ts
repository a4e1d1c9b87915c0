import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import { ETC_UNITS, type UnitFile } from '../../../machineconfig/units/unit-tree.ts';
import type { TreeRoots } from '../../files/host-tree.ts';
import { imageEtcIn } from '../../files/image-tree.ts';
import { type UnitSource, unitFileAt, unitsIn } from '../../files/units-in-tree.ts';
import { originalAt, readOriginals } from '../write/originals.ts';

/**
 * The units of a tree as they are without the config that standard mode has written there: where the record knows a
 * path as that config's, what it was before. Any other config finds the same units, whatever config is on the disk, and
 * so does the one that is: an override that is about to go decides no links of the next config.
 */
export async function originalUnits({ root, varRoot }: TreeRoots): Promise<UnitSource> {
  const stateDir = path.join(varRoot ?? root, nodePaths.state);
  const { paths } = await readOriginals(stateDir);
  const owned = new Map([...paths].filter(([name]) => name.startsWith(`${ETC_UNITS}/`)));
  const present = unitsIn(root);
  const image = unitsIn(root, await imageEtcIn(root));
  const entry = async (name: string): Promise<UnitFile | undefined> => {
    const original = owned.get(name);
    switch (original?.kind) {
      case undefined:
        return present.entry(name);
      case 'image':
        return image.entry(name);
      case 'copy':
        return unitFileAt(originalAt(stateDir, name));
      case 'directory':
        return { kind: 'other' };
      case 'absent':
        return undefined;
    }
  };
  return {
    entry,
    list: async (directory) => {
      const names = new Set(await present.list(directory));
      for (const name of owned.keys()) {
        if (path.posix.dirname(name) !== directory) continue;
        const base = path.posix.basename(name);
        if ((await entry(name)) === undefined) names.delete(base);
        else names.add(base);
      }
      return [...names].sort();
    },
    links: async () => {
      const links = new Map(await present.links());
      for (const name of owned.keys()) {
        const original = await entry(name);
        if (original?.kind === 'link') links.set(name, original.target);
        else links.delete(name);
      }
      return links;
    },
  };
}
