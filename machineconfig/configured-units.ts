import { posix } from 'node:path';
import type { NodeConfig, NodeUnit } from './node-config.ts';
import { ETC_UNITS, UNIT_DIRECTORIES, type UnitFile, type UnitTree } from './units/unit-tree.ts';

/** What of a config decides about its units: files and links may bring units, drop-ins and links of units too. */
export type UnitConfig = Pick<NodeConfig, 'units' | 'files' | 'directories' | 'links'>;

/**
 * @returns the texts of a unit and of its drop-ins by path. MCO skips one without content (`writeUnit`,
 *   `writeDropins`): an empty unit file would be a mask (systemd.unit(5)).
 */
export function unitFiles(unit: NodeUnit): ReadonlyMap<string, string> {
  const unitPath = posix.join(ETC_UNITS, unit.name);
  const own = unit.masked || unit.contents === undefined ? [] : [[unitPath, unit.contents] as const];
  const dropins = [...unit.dropins].map(
    ([name, contents]) => [posix.join(`${unitPath}.d`, name), contents] as const,
  );
  return new Map([...own, ...dropins].filter(([, text]) => text !== ''));
}

/** @returns the config's units that are masked, by the path of the link that does it. */
export function maskLinks({ units }: UnitConfig): ReadonlyMap<string, string> {
  const masked = [...units.values()].filter((unit) => unit.masked);
  return new Map(masked.map(({ name }) => [`${ETC_UNITS}/${name}`, '/dev/null']));
}

/**
 * A tree with a config's own files on it, as they are before any unit is enabled or disabled: MCO writes all files and
 * masks first (`writeUnits`).
 *
 * @param tree what is known of the tree without them.
 */
export function configuredTree(config: UnitConfig, tree: UnitTree): UnitTree {
  const own = ownFiles(config);
  const links = new Map([...tree.links].filter(([path]) => !own.has(path)));
  const names = new Map<string, string[]>();
  for (const [path, file] of own) {
    if (file.kind === 'link' && path.startsWith(`${ETC_UNITS}/`)) links.set(path, file.target);
    const directory = posix.dirname(path);
    names.set(directory, [...(names.get(directory) ?? []), posix.basename(path)]);
  }
  return {
    links,
    entry: (path) => own.get(path) ?? tree.entry(path),
    list: (directory) => [...new Set([...tree.list(directory), ...(names.get(directory) ?? [])])],
  };
}

/** @returns whether the config itself has something at a path, which then is no place for a link of [Install]. */
export function ownPaths(config: UnitConfig): (path: string) => boolean {
  const own = ownFiles(config);
  return (path) => own.has(path);
}

/**
 * Where two entries of a config have one path, the later one here is what a node gets
 * (daemon/content/entries/desired-tree.ts).
 */
function ownFiles(config: UnitConfig): ReadonlyMap<string, UnitFile> {
  const own = new Map<string, UnitFile>();
  for (const { path } of config.directories.values()) if (isOfUnits(path)) own.set(path, { kind: 'other' });
  for (const { path, contents } of config.files.values()) {
    if (isOfUnits(path)) own.set(path, { kind: 'file', text: Buffer.from(contents).toString() });
  }
  for (const unit of config.units.values()) {
    for (const [path, text] of unitFiles(unit)) own.set(path, { kind: 'file', text });
  }
  for (const [path, target] of maskLinks(config)) own.set(path, { kind: 'link', target });
  for (const { path, target, hard } of config.links.values()) {
    if (!isOfUnits(path)) continue;
    // The other name of a file has what the file has.
    const shared = hard ? (own.get(target) ?? { kind: 'other' as const }) : undefined;
    own.set(path, shared ?? { kind: 'link', target });
  }
  return own;
}

function isOfUnits(path: string): boolean {
  return UNIT_DIRECTORIES.some((directory) => path.startsWith(`${directory}/`));
}
