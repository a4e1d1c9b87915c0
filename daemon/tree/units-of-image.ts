import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { NodeUnit } from '../../machineconfig/node-config.ts';
import { type UnitLinks, unitLinks } from '../../machineconfig/unit-links.ts';
import { readImageConfig } from '../records/image-config.ts';
import { imageEtcIn, inImageEtc } from './image-tree.ts';
import type { Tree } from './read-tree.ts';
import { resolveInRoot } from './resolve-in-root.ts';
import { readTreeEntry, sameEntry, type TreeEntry } from './tree-entry.ts';

/** Where units of the host and of configs lie, and where the operating system has its own. */
const UNIT_DIRECTORIES = { etc: '/etc/systemd/system', os: '/usr/lib/systemd/system' } as const;

/**
 * The links of units in a tree, by the texts that the tree itself has of units that no config brings.
 *
 * @param root of the tree. @param units of a rendered config. @param directories where their texts are, the first that has
 *   one; those of a running root unless given.
 * @throws the file system's errors.
 */
export async function linksOfUnits(
  root: string,
  units: readonly NodeUnit[],
  directories: readonly string[] = Object.values(UNIT_DIRECTORIES),
): Promise<UnitLinks> {
  // The text of a unit decides its links, and the units that its Also= names decide theirs: read until no more are asked for.
  const texts = new Map<string, string | undefined>();
  for (;;) {
    const required = new Set<string>();
    const links = unitLinks(units, (name) => {
      if (!texts.has(name)) required.add(name);
      return texts.get(name);
    });
    if (required.size === 0) return links;
    for (const name of required) texts.set(name, await unitText(root, name, directories));
  }
}

async function unitText(
  root: string,
  name: string,
  directories: readonly string[],
): Promise<string | undefined> {
  for (const directory of directories) {
    const place = await resolveInRoot(root, `${directory}/${name}`);
    // A link is an alias or a mask, and no unit's own text.
    if (place === undefined || (await readTreeEntry(place))?.kind !== 'file') continue;
    return readFile(place, 'utf8');
  }
  return undefined;
}

/** What an image wants in /etc. */
export interface EtcOfImage {
  readonly etc: Tree;
  /** Paths that the image's own version of /etc has otherwise. */
  readonly differing: ReadonlySet<string>;
}

/**
 * What an image wants in /etc: its own version, with the links of its config's units as `systemctl enable` and `disable`
 * would leave them. The builder doesn't know the units of the base (machineconfig/layered-files.ts), so a layer can
 * neither remove the links by which the base enables one, nor add any.
 *
 * @param root of its deployment. @param etc its own version of /etc.
 */
export async function etcOfImage(root: string, etc: Tree): Promise<EtcOfImage> {
  const config = await readImageConfig(root);
  if (config === undefined) return { etc, differing: new Set() };
  const directories = [inImageEtc(await imageEtcIn(root), UNIT_DIRECTORIES.etc), UNIT_DIRECTORIES.os];
  const { links, removals } = await linksOfUnits(root, [...config.units.values()], directories);
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
