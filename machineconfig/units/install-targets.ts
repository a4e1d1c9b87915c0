import { posix } from 'node:path';
import { expandSpecifiers, instanceOf, isAliasOf, parseUnitName, templateOf } from './unit-name.ts';
import type { FoundUnit } from './unit-tree.ts';

type Unit = Extract<FoundUnit, { kind: 'unit' }>;

/** A link that a unit's [Install] asks for. */
export interface InstallTarget {
  /** Which setting does, as text. */
  readonly setting: string;
  /** Below /etc/systemd/system. */
  readonly place: string;
}

/**
 * The links to a unit that its [Install] asks for (systemd.unit(5), "[Install] Section Options").
 *
 * @returns them, and what systemd refuses of it, each as a clause.
 * @param whyNotDefault why the instance can't be enabled that a template's DefaultInstance= names.
 */
export function installTargets(
  unit: Unit,
  whyNotDefault?: string,
): { readonly targets: readonly InstallTarget[]; readonly refused: readonly string[] } {
  const { install } = unit;
  const targets: InstallTarget[] = [];
  const refused: string[] = [];
  for (const alias of install.aliases) {
    const setting = `Alias=${alias}`;
    const place = aliasPlace(unit, expand(unit, alias));
    if (place === undefined) refused.push(`${setting}: ${unit.name} may not have that alias`);
    else if (place !== unit.name) targets.push({ setting, place });
  }
  const name = linkedName(unit);
  for (const [key, list, suffix] of [
    ['WantedBy', install.wantedBy, 'wants'],
    ['RequiredBy', install.requiredBy, 'requires'],
    ['UpheldBy', install.upheldBy, 'upholds'],
  ] as const) {
    if (list.length > 0 && whyNotDefault !== undefined) refused.push(whyNotDefault);
    for (const other of whyNotDefault === undefined ? list : []) {
      const setting = `${key}=${other}`;
      const target = expand(unit, other);
      const why = whyNotTarget(name, target);
      if (why === undefined) targets.push({ setting, place: `${target}.${suffix}/${name}` });
      else refused.push(`${setting}: ${why}`);
    }
  }
  return { targets, refused };
}

function whyNotTarget(name: string, target: string | undefined): string | undefined {
  if (target === undefined) return 'a specifier in it differs between hosts';
  const parsed = parseUnitName(target);
  if (parsed === undefined) return `${target} is not the name of a unit`;
  if (parsed.kind !== 'plain' || parseUnitName(name)?.kind !== 'template') return undefined;
  return `enabling does nothing without an instance, because the template ${name} has no DefaultInstance=`;
}

/** A template is enabled as its default instance, if it has one. */
export function linkedName(unit: Unit): string {
  return nameWith(unit, unit.install.defaultInstances.at(-1) ?? '');
}

/** @returns the units that Also= names; undefined in place of an invalid name. */
export function alsoOf(unit: Unit): readonly (string | undefined)[] {
  return unit.install.also.map(({ name, defaultInstance }) => {
    const expanded = expandIn(nameWith(unit, defaultInstance), name);
    return expanded !== undefined && parseUnitName(expanded) !== undefined ? expanded : undefined;
  });
}

/**
 * @returns why systemd does not read a unit at all, which it does for wrong values of two settings
 *   (src/shared/install.c, `config_parse_also`, `config_parse_default_instance`).
 */
export function whyUnreadable(unit: Unit): string | undefined {
  const isTemplate = parseUnitName(unit.name)?.kind === 'template';
  for (const instance of isTemplate ? unit.install.defaultInstances : []) {
    if (instance !== '' && nameWith(unit, instance) === unit.name) {
      return `DefaultInstance=${instance}: ${instance} is not the name of an instance`;
    }
  }
  const index = alsoOf(unit).indexOf(undefined);
  return index < 0 ? undefined : `Also=${unit.install.also[index]?.name}: not the name of a unit`;
}

function nameWith({ name }: Unit, defaultInstance: string): string {
  if (defaultInstance === '' || parseUnitName(name)?.kind !== 'template') return name;
  const instance = expandIn(name, defaultInstance);
  return (instance && instanceOf(name, instance)) ?? name;
}

function expand(unit: Unit, text: string): string | undefined {
  return expandIn(linkedName(unit), text);
}

function expandIn(name: string, text: string): string | undefined {
  const parsed = parseUnitName(name);
  return parsed && expandSpecifiers(text, parsed, name);
}

/**
 * @returns where an alias lies; undefined for one that systemd refuses. A template's name is an instance's alias as the
 *   same instance of it. Of old, an alias may be a link in a directory of dependencies.
 */
function aliasPlace({ name }: Unit, alias: string | undefined): string | undefined {
  const unit = parseUnitName(name);
  if (alias === undefined || unit === undefined) return undefined;
  if (alias.includes('/')) return isDependencyLink(alias, name) ? alias : undefined;
  const place =
    unit.kind === 'instance' && alias === templateOf(alias) ? instanceOf(alias, unit.instance) : alias;
  const parsed = place === undefined ? undefined : parseUnitName(place);
  return parsed !== undefined && isAliasOf(parsed, unit) ? place : undefined;
}

function isDependencyLink(alias: string, name: string): boolean {
  const [, directory = ''] = /^([^/]+)\.(?:wants|requires)$/.exec(posix.dirname(alias)) ?? [];
  const by = parseUnitName(directory);
  const base = posix.basename(alias);
  if (by === undefined) return false;
  // A template is a dependency of a template alone, whose instance it gets.
  if (parseUnitName(base)?.kind === 'template') return base === name && by.kind === 'template';
  return base === name || templateOf(base) === name;
}
