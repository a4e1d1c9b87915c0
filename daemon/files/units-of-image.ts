import path from 'node:path';
import { unitLinksOfImage } from '../../machineconfig/unit-links.ts';
import { readImageConfig } from '../records/image-config.ts';
import { imageEtcIn } from './image-tree.ts';
import type { Tree } from './read-tree.ts';
import { sameEntry, type TreeEntry } from './tree-entry.ts';
import { unitsIn, withUnits } from './units-in-tree.ts';

/** What an image wants in /etc. */
export interface EtcOfImage {
  readonly etc: Tree;
  /** Paths that the image's own version of /etc has otherwise. */
  readonly differing: ReadonlySet<string>;
}

/**
 * What an image wants in /etc: its own version, with the links of its config's units as `systemctl enable` and
 * `disable` would leave them. The builder doesn't know the units of the base (machineconfig/unit-preset.ts), so a layer
 * can neither remove the links by which the base enables one, nor add any.
 *
 * @param root of its deployment. @param etc its own version of /etc.
 */
export async function etcOfImage(root: string, etc: Tree): Promise<EtcOfImage> {
  const config = await readImageConfig(root);
  if (config === undefined) return { etc, differing: new Set() };
  const units = unitsIn(root, await imageEtcIn(root));
  const { links, removals } = await withUnits(units, (tree) => unitLinksOfImage(config, tree));
  const wanted = new Map(etc);
  for (const name of removals) wanted.delete(name);
  for (const { path: name, target } of links) {
    for (let parent = path.posix.dirname(name); parent !== '/etc'; parent = path.posix.dirname(parent)) {
      if (!wanted.has(parent)) wanted.set(parent, PARENT);
    }
    wanted.set(name, { kind: 'symlink', target, uid: 0, gid: 0 });
  }
  const names = [...removals, ...wanted.keys()];
  const differing = names.filter((name) => !sameEntry(wanted.get(name), etc.get(name)));
  return { etc: wanted, differing: new Set(differing) };
}

const PARENT: TreeEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0 };
