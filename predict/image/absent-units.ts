import type { DisruptionAction } from '../../api/disruption-action.ts';
import { type BaseContent, resolveInBase } from '../../machineconfig/base-tree.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { UNIT_DIRECTORIES } from '../../machineconfig/units/unit-tree.ts';

/** Where systemd.unit(5) has units that a host keeps, and what systemd-sysv-generator(8) makes units of. */
const PLACES = [...UNIT_DIRECTORIES, '/lib/systemd/system'];
const SYSV = '/etc/init.d';

/**
 * A reload or restart of a unit that no host has fails on the first node, which reboots.
 *
 * @param configs before and after the change: what a change removes is stopped.
 * @returns a warning for each unit that actions name and that is nowhere.
 */
export function absentUnits(
  actions: readonly DisruptionAction[],
  configs: readonly NodeConfig[],
  base: BaseContent,
): readonly string[] {
  const named = actions.flatMap((action) => ('service' in action ? [action.service] : []));
  return [...new Set(named)]
    .filter((unit) => !namesOf(unit).some((name) => isThere(name, configs, base)))
    .map(
      (unit) =>
        `a policy names ${unit}, of which neither the config nor the base image has a unit file: unless something generates it, the first node reboots, and the rollout stops there`,
    );
}

/** An instance has the file of its template (systemd.unit(5)). */
function namesOf(unit: string): readonly string[] {
  const at = unit.indexOf('@');
  const type = unit.lastIndexOf('.');
  return at < 0 || type <= at + 1 ? [unit] : [unit, `${unit.slice(0, at + 1)}${unit.slice(type)}`];
}

function isThere(name: string, configs: readonly NodeConfig[], base: BaseContent): boolean {
  const places = [...PLACES.map((place) => `${place}/${name}`), `${SYSV}/${name.replace(/\.service$/, '')}`];
  return (
    configs.some(
      ({ units, files, links }) =>
        units.get(name)?.contents !== undefined || places.some((path) => files.has(path) || links.has(path)),
    ) ||
    places.some((path) => {
      const place = resolveInBase(base, path);
      return place.kind === 'place' && base.at(place.path) !== undefined;
    })
  );
}
