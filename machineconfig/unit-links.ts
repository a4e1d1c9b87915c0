import { by } from '../api/order.ts';
import { configuredTree, maskLinks, ownPaths, type UnitConfig } from './configured-units.ts';
import { Enablement, type UnitRefusal } from './units/enablement.ts';
import { type UnitTree, unknownTree } from './units/unit-tree.ts';

/** A link under /etc/systemd/system by which systemd enables or masks a unit. */
export interface UnitLink {
  readonly path: string;
  readonly target: string;
}

export interface UnitLinks {
  readonly links: readonly UnitLink[];
  /** Paths where no link may be: those of disabled units. */
  readonly removals: readonly string[];
  /** What systemctl would refuse to enable. */
  readonly refusals: readonly UnitRefusal[];
}

/**
 * The links that `systemctl --root enable`, `disable` and `mask` leave for the units of a config, one after the other
 * in the config's order (systemctl(1), and systemd.unit(5) "[Install] Section Options").
 *
 * What the config itself has at a path stays: systemctl leaves a file that is in a link's way, too, and a link that
 * somebody wrote down is meant. What the base has in a link's way is replaced, as by `systemctl enable --force`: an
 * image can't know of it.
 *
 * @param tree what is known of the tree without the config's own files; nothing, in a build. An enabled unit that is
 *   neither there nor in the config has no links: the image has a preset for it (unit-preset.ts).
 * @returns links and removals, sorted by path.
 */
export function unitLinks(config: UnitConfig, tree: UnitTree): UnitLinks {
  return linksIn(config, tree, []);
}

/**
 * As unitLinks, for a tree that has the config's image on it: the links that the image carries for what the build knew,
 * and that the whole tree asks for no more, are removals.
 */
export function unitLinksOfImage(config: UnitConfig, tree: UnitTree): UnitLinks {
  const { links } = unitLinks(config, unknownTree);
  const isOwn = ownPaths(config);
  const carried = links.filter(({ path, target }) => tree.links.get(path) === target && !isOwn(path));
  return linksIn(
    config,
    tree,
    carried.map(({ path }) => path),
  );
}

function linksIn(config: UnitConfig, tree: UnitTree, without: readonly string[]): UnitLinks {
  const isOwn = ownPaths(config);
  const enablement = new Enablement(configuredTree(config, tree), isOwn, without);
  for (const { name, enabled, masked } of config.units.values()) {
    if (masked || enabled === undefined) continue;
    if (enabled) enablement.enable(name);
    else enablement.disable(name);
  }
  const { made, links, refusals } = enablement;
  const removed = [...tree.links.keys()].filter((path) => !links.has(path) && !isOwn(path));
  return {
    links: [...made, ...maskLinks(config)]
      .map(([path, target]) => ({ path, target }))
      .sort(by(({ path }) => path)),
    removals: [...new Set([...removed, ...installLinks(config, enablement, isOwn)])].sort(),
    refusals,
  };
}

/**
 * Where enabling a disabled unit would put links: that none is there is what `enabled: false` asks for, from now on.
 */
function installLinks(config: UnitConfig, after: Enablement, isOwn: (path: string) => boolean): string[] {
  const again = new Enablement(after, isOwn);
  for (const { name, enabled, masked } of config.units.values()) {
    if (!masked && enabled === false) again.enable(name);
  }
  return [...again.made.keys()].filter((path) => after.entry(path) === undefined);
}
