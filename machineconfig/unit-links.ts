import { by } from '../api/order.ts';
import type { NodeUnit } from './node-config.ts';

/** A link under /etc/systemd/system by which systemd enables or masks a unit. */
export interface UnitLink {
  readonly path: string;
  readonly target: string;
}

export interface UnitLinks {
  readonly links: readonly UnitLink[];
  /** Links to remove: those of disabled units. */
  readonly removals: readonly string[];
}

const ETC_UNITS = '/etc/systemd/system';
const OS_UNITS = '/usr/lib/systemd/system';

/**
 * The links that `systemctl --root enable`, `disable` and `mask` would create for these units (systemctl(1), and
 * systemd.unit(5) "[Install] Section Options"): WantedBy, RequiredBy, UpheldBy, Alias and Also.
 *
 * @param units of a rendered config.
 * @param contentsOf text of a unit of the OS, by its name; undefined when it is unknown.
 * @returns links and removals, sorted by path. An enabled unit whose text is unknown has no links: the caller uses a preset
 *   for it.
 */
export function unitLinks(
  units: readonly NodeUnit[],
  contentsOf: (name: string) => string | undefined,
): UnitLinks {
  const links = new Map<string, string>();
  const removals = new Set<string>();
  const given = new Map(units.map((unit) => [unit.name, unit]));
  for (const unit of units) {
    if (unit.masked) {
      links.set(`${ETC_UNITS}/${unit.name}`, '/dev/null');
      continue;
    }
    if (unit.enabled === undefined) continue;
    for (const name of withAlso(unit.name, (other) => textOf(given.get(other), other, contentsOf))) {
      const own = given.get(name);
      for (const link of installLinks(
        name,
        textOf(own, name, contentsOf) ?? '',
        own?.contents !== undefined,
      )) {
        if (unit.enabled) links.set(link.path, link.target);
        else removals.add(link.path);
      }
    }
  }
  for (const path of links.keys()) removals.delete(path);
  return {
    links: [...links].map(([path, target]) => ({ path, target })).sort(by(({ path }) => path)),
    removals: [...removals].sort(),
  };
}

function textOf(
  unit: NodeUnit | undefined,
  name: string,
  contentsOf: (name: string) => string | undefined,
): string | undefined {
  const text = unit?.contents ?? contentsOf(name) ?? contentsOf(templateOf(name) ?? name);
  if (text === undefined || unit === undefined) return text;
  // Drop-ins are read after the unit, so their [Install] counts too.
  return [text, ...unit.dropins.values()].join('\n');
}

/** A unit and those that its Also= names, each once. */
function withAlso(name: string, text: (name: string) => string | undefined): string[] {
  const units = new Set([name]);
  for (const unit of units) for (const also of listOf(text(unit) ?? '', 'Also')) units.add(also);
  return [...units];
}

function installLinks(name: string, text: string, isOurs: boolean): UnitLink[] {
  const target = `${isOurs ? ETC_UNITS : OS_UNITS}/${templateOf(name) ?? name}`;
  const into = (key: string, suffix: string) =>
    listOf(text, key).map((other) => ({
      path: `${ETC_UNITS}/${expand(other, name)}.${suffix}/${linkName(name, text)}`,
      target,
    }));
  return [
    ...into('WantedBy', 'wants'),
    ...into('RequiredBy', 'requires'),
    ...into('UpheldBy', 'upholds'),
    ...listOf(text, 'Alias').map((alias) => ({ path: `${ETC_UNITS}/${expand(alias, name)}`, target })),
  ].filter(({ path }) => path !== `${ETC_UNITS}/${name}`);
}

/** A template without an instance is enabled as its DefaultInstance. */
function linkName(name: string, text: string): string {
  const [, prefix, suffix] = /^([^@]+@)(\.[a-z]+)$/.exec(name) ?? [];
  const [instance] = listOf(text, 'DefaultInstance');
  return prefix === undefined || instance === undefined ? name : `${prefix}${instance}${suffix ?? ''}`;
}

/** @returns `getty@.service` for `getty@tty1.service`; undefined for a unit that is not an instance. */
function templateOf(name: string): string | undefined {
  const [, prefix, suffix] = /^([^@]+@)[^@]+(\.[a-z]+)$/.exec(name) ?? [];
  return prefix === undefined || suffix === undefined ? undefined : `${prefix}${suffix}`;
}

/** The specifiers that [Install] commonly has (systemd.unit(5) "Specifiers"). */
function expand(text: string, name: string): string {
  const [, prefix = name.replace(/\.[a-z]+$/, ''), instance = ''] =
    /^([^@]+)@([^@]*)\.[a-z]+$/.exec(name) ?? [];
  const values: Readonly<Record<string, string>> = { '%i': instance, '%p': prefix, '%n': name, '%%': '%' };
  return text.replace(/%[ipn%]/g, (specifier) => values[specifier] ?? specifier);
}

/**
 * Values of a key of [Install]: every assignment adds to the list, an empty one clears it (systemd.syntax(7)).
 * Anything that is not a plain unit name is ignored, because the name becomes part of a path.
 */
function listOf(text: string, key: string): string[] {
  let section = '';
  let values: string[] = [];
  for (const line of text
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .map((part) => part.trim())) {
    const header = /^\[(.+)\]$/.exec(line)?.[1];
    if (header !== undefined) section = header;
    const [, name, value = ''] = /^([A-Za-z]+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (section !== 'Install' || name !== key) continue;
    values = value === '' ? [] : [...values, ...value.split(/\s+/)];
  }
  return values.filter((value) => /^[A-Za-z0-9:_.\\@%-]+$/.test(value) && !value.startsWith('.'));
}
