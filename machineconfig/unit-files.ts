import { posix } from 'node:path';
import type { NodeUnit } from './node-config.ts';
import { ETC_UNITS } from './units/unit-tree.ts';

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
